import { type MergeKeys, strategicPatch } from "../api-client/strategic-patch.ts";
import type { NodeCondition, NodeObject } from "../api/node.ts";
import { formatTime } from "../base/time.ts";
import { type Pressure, pressures } from "../eviction/pressure.ts";
import type { CloudFacts } from "../cloud/cloud-resource-sync.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { allocatable, type CapacitySettings, nodeCapacity } from "./node-capacity.ts";
import type { NodeFacts } from "./node-facts.ts";

/** What does not change while podwright runs. */
export interface NodeIdentity {
  readonly name: string;
  readonly facts: NodeFacts;
  /** As Go has it: `amd64`. */
  readonly architecture: string;
  /** Of the kubelet's API; 0: none is served. */
  readonly apiPort: number;
  /** `v1.36.2+podwright.0.1.0` */
  readonly kubeletVersion: string;
  readonly capacity: CapacitySettings;
  /** `--cloud-provider=external`: a cloud controller manager says what the addresses are. */
  readonly externalCloud?: ExternalCloud;
}

/** What a Node says of its runtime. */
export type RuntimeFacts = Pick<RuntimeInfo, "name" | "version" | "handlers" | "supplementalGroupsPolicy">;

export interface ExternalCloud {
  /** Addresses of `--node-ip`, the unspecified ones left out: a hint for the controller. */
  readonly nodeIps: readonly string[];
  /** `--node-ip` is given: the node says its addresses until the controller does. */
  readonly saysAddresses: boolean;
}

export interface NodeImage {
  readonly names: readonly string[];
  readonly sizeBytes: number;
}

/** What does. */
export interface NodeObservation {
  /** Wall clock, milliseconds. */
  readonly now: number;
  /** The machine's, or those of `--node-ip`. */
  readonly addresses: readonly string[];
  readonly runtime: RuntimeFacts;
  /** Why the node can't run pods; none: it is ready. */
  readonly problems: readonly string[];
  readonly images: readonly NodeImage[];
  /** What the machine runs short of. */
  readonly pressures?: readonly Pressure[] | undefined;
  /** What the cloud's metadata say, where they are asked and have answered. */
  readonly cloud?: CloudFacts | undefined;
}

/** Lists of NodeStatus that the server merges; addresses may repeat their key, so they are replaced. */
const mergeKeys: MergeKeys = {
  conditions: { key: "type", anyOrder: true },
  addresses: { key: "type", replace: true },
};

export interface Address {
  readonly type: string;
  readonly address: string;
}

/** What of a status that was written before says something about the next one. */
interface WrittenStatus {
  readonly conditions?: readonly NodeCondition[] | undefined;
  readonly addresses?: readonly Address[] | undefined;
}

/**
 * What a node is reached by: as a cloud says, else as the machine does. What a cloud controller manager has written stays.
 * Pure.
 */
export function nodeAddresses(
  { name, externalCloud }: Pick<NodeIdentity, "name" | "externalCloud">,
  addresses: readonly string[],
  cloud?: Pick<CloudFacts, "addresses">,
  written: readonly Address[] = [],
): readonly Address[] {
  const hostname = { type: "Hostname", address: name };
  if (cloud !== undefined) return [...cloud.addresses.filter(({ type }) => type !== "Hostname"), hostname];
  if (externalCloud !== undefined && written.length > 0) return written;
  if (externalCloud?.saysAddresses === false) return [hostname];
  return [...addresses.map((address) => ({ type: "InternalIP", address })), hostname];
}

export type NodeStatus = Readonly<Record<string, unknown>> & { readonly addresses: readonly Address[] };

/** The status that a kubelet writes of its node; conditions of others are not in it. Pure. */
export function nodeStatus(
  identity: NodeIdentity,
  observed: NodeObservation,
  previous: WrittenStatus = {},
): NodeStatus {
  const { facts } = identity;
  const { runtime } = observed;
  const capacity = nodeCapacity(facts, identity.capacity);
  return {
    addresses: nodeAddresses(identity, observed.addresses, observed.cloud, previous.addresses),
    capacity,
    allocatable: allocatable(facts, capacity, identity.capacity),
    conditions: nodeConditions(observed, previous.conditions ?? []),
    nodeInfo: {
      machineID: facts.machineId,
      systemUUID: facts.systemUuid,
      bootID: facts.bootId,
      kernelVersion: facts.kernelVersion,
      osImage: facts.osImage,
      containerRuntimeVersion: `${runtime.name}://${runtime.version}`,
      kubeletVersion: identity.kubeletVersion,
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture: identity.architecture,
      ...(facts.swapBytes > 0n && { swap: { capacity: Number(facts.swapBytes) } }),
    },
    ...(identity.apiPort > 0 && { daemonEndpoints: { kubeletEndpoint: { Port: identity.apiPort } } }),
    images: observed.images,
    runtimeHandlers: runtime.handlers.map(({ name, recursiveReadOnlyMounts, userNamespaces }) => ({
      name,
      features: { recursiveReadOnlyMounts, userNamespaces },
    })),
    features: { supplementalGroupsPolicy: runtime.supplementalGroupsPolicy },
    declaredFeatures,
  };
}

/** What pods may ask of this node that not every kubelet can (KEP-5328), in the order of the alphabet. */
const declaredFeatures = ["ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"];

interface Finding {
  readonly status: NodeCondition["status"];
  readonly reason: string;
  readonly message: string;
}

/** What a node says of a pressure, and the event when that begins or ends. */
const pressureWords = {
  MemoryPressure: {
    under: ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"],
    free: ["KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"],
  },
  DiskPressure: {
    under: ["KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"],
    free: ["KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"],
  },
  PIDPressure: {
    under: ["KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"],
    free: ["KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"],
  },
} as const;

function pressureFinding(pressure: Pressure, isUnder: boolean): Finding {
  const [reason, message] = pressureWords[pressure][isUnder ? "under" : "free"];
  return { status: isUnder ? "True" : "False", reason, message };
}

/** Events of what a Node says anew of its pressure and readiness, in the order of its conditions. Pure. */
export function conditionEvents(before: NodeObject | undefined, after: NodeObject): string[] {
  const statusOf = (node: NodeObject | undefined, type: string): string | undefined =>
    node?.status?.conditions?.find((condition) => condition.type === type)?.status;
  const told = pressures.flatMap((pressure) => {
    const status = statusOf(after, pressure);
    if (status === undefined || status === statusOf(before, pressure)) return [];
    return [pressureWords[pressure][status === "True" ? "under" : "free"][2]];
  });
  const readiness = statusOf(after, "Ready");
  const was = statusOf(before, "Ready");
  // As upstream: a Node of which nobody has said either is not said to have become ready or not.
  if (was === undefined || readiness === was) return told;
  return [...told, readiness === "True" ? "NodeReady" : "NodeNotReady"];
}

function nodeConditions(observed: NodeObservation, previous: readonly NodeCondition[]): NodeCondition[] {
  const { problems, now, pressures: under = [] } = observed;
  const findings: readonly (readonly [string, Finding])[] = [
    ...pressures.map((pressure) => [pressure, pressureFinding(pressure, under.includes(pressure))] as const),
    ["Ready", ready(problems)],
  ];
  return findings.map(([type, finding]) => {
    const before = previous.find((condition) => condition.type === type);
    const since = before?.status === finding.status ? before.lastTransitionTime : undefined;
    return {
      type,
      ...finding,
      lastHeartbeatTime: formatTime(now),
      lastTransitionTime: since ?? formatTime(now),
    };
  });
}

function ready(problems: readonly string[]): Finding {
  if (problems.length === 0) {
    return { status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" };
  }
  const message = problems.length === 1 ? (problems[0] ?? "") : `[${problems.join(", ")}]`;
  return { status: "False", reason: "KubeletNotReady", message };
}

/** The Node as it is registered. Pure. */
export function newNode(
  identity: NodeIdentity,
  observed: NodeObservation,
  registration: NodeRegistration,
): Record<string, unknown> {
  const { labels, annotations } = ownMetadata(identity, registration, observed.cloud);
  const taints = identity.externalCloud === undefined ? registration.taints : [...registration.taints, uninitialized];
  const providerId = registration.providerId || (observed.cloud?.providerId ?? "");
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: identity.name, labels, annotations },
    spec: { ...(taints.length > 0 && { taints }), ...(providerId !== "" && { providerID: providerId }) },
    status: nodeStatus(identity, observed),
  };
}

/** Keeps pods away until the cloud controller manager knows the node; it takes it off. */
const uninitialized = { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" };
const providedNodeIp = "alpha.kubernetes.io/provided-node-ip";
const controllerAttachesVolumes = "volumes.kubernetes.io/controller-managed-attach-detach";

/** What is said at the registration alone. */
export interface NodeRegistration {
  /** registerNode: false to wait until somebody else makes the Node. */
  readonly enabled: boolean;
  /** registerWithTaints. */
  readonly taints: readonly object[];
  /** --node-labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly providerId: string;
  /** Whether volumes are attached by the controller (enableControllerAttachDetach). */
  readonly controllerAttaches: boolean;
}

/** What a kubelet says of its node beside the status. Pure. */
export function ownMetadata(
  { name, architecture, externalCloud }: NodeIdentity,
  { labels, controllerAttaches }: NodeRegistration,
  cloud?: Pick<CloudFacts, "labels">,
): { readonly labels: Readonly<Record<string, string>>; readonly annotations: Readonly<Record<string, string>> } {
  return {
    labels: {
      "kubernetes.io/hostname": name,
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": architecture,
      "beta.kubernetes.io/os": "linux",
      "beta.kubernetes.io/arch": architecture,
      ...cloud?.labels,
      ...labels,
    },
    annotations: {
      ...(controllerAttaches && { [controllerAttachesVolumes]: "true" }),
      ...(externalCloud !== undefined &&
        externalCloud.nodeIps.length > 0 && { [providedNodeIp]: externalCloud.nodeIps.join(",") }),
    },
  };
}

/**
 * What a Node that was there already lacks of this node's labels and annotations, and which extended resources of an
 * earlier life are gone; undefined when nothing is to be changed. Pure.
 */
export function reconcilePatch(
  found: NodeObject,
  identity: NodeIdentity,
  registration: NodeRegistration,
  cloud?: Pick<CloudFacts, "labels">,
): object | undefined {
  const { labels, annotations } = ownMetadata(identity, registration, cloud);
  // What an earlier life said and this one does not.
  const stale = [providedNodeIp, controllerAttachesVolumes].filter(
    (key) => found.metadata.annotations?.[key] !== undefined && annotations[key] === undefined,
  );
  const none = Object.fromEntries(stale.map((key) => [key, null]));
  const patch = {
    labels: missing(found.metadata.labels, described(labels)),
    annotations: { ...missing(found.metadata.annotations, annotations), ...none },
  };
  const zeros = Object.fromEntries(
    Object.entries(found.status?.capacity ?? {})
      .filter(([name, value]) => isExtended(name) && value !== "0")
      .map(([name]) => [name, "0"]),
  );
  const metadata = Object.fromEntries(Object.entries(patch).filter(([, entries]) => Object.keys(entries).length > 0));
  const status = Object.keys(zeros).length > 0 ? { capacity: zeros, allocatable: zeros } : undefined;
  if (Object.keys(metadata).length === 0 && status === undefined) return undefined;
  return { ...(Object.keys(metadata).length > 0 && { metadata }), ...(status && { status }) };
}

/** Labels that say what the machine is (upstream's updateDefaultLabels); others are the administrator's once they are given. */
const defaultLabels: ReadonlySet<string> = new Set([
  "kubernetes.io/hostname",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "node.kubernetes.io/instance-type",
  "beta.kubernetes.io/instance-type",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
]);

function described(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => defaultLabels.has(key)));
}

function missing(
  has: Readonly<Record<string, string>> = {},
  wanted: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => has[key] !== value));
}

/** What the cloud tells of a Node that is registered, beyond its status: labels and its id; undefined: nothing new. Pure. */
export function cloudPatch(
  found: NodeObject,
  cloud: Pick<CloudFacts, "labels" | "providerId"> | undefined,
  { labels: given }: Pick<NodeRegistration, "labels">,
): object | undefined {
  if (cloud === undefined) return undefined;
  const labels = missing(found.metadata.labels, described({ ...cloud.labels, ...given }));
  // An id is for ever.
  const isNew = (found.spec?.providerID ?? "") === "";
  if (Object.keys(labels).length === 0 && !isNew) return undefined;
  return {
    ...(Object.keys(labels).length > 0 && { metadata: { labels } }),
    ...(isNew && { spec: { providerID: cloud.providerId } }),
  };
}

/** Resources of devices: names with a domain that is not Kubernetes' own. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}

/** Extended resources that somebody, a device plugin or a person, has given the node to share out. Pure. */
export function extendedResources({ status }: NodeObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(status?.allocatable ?? {}).filter(([name]) => isExtended(name)));
}

/** The labels that say what pods the machine can run at all: put right with each status (upstream's updateNode). */
export function machineLabels({ architecture }: Pick<NodeIdentity, "architecture">): Readonly<Record<string, string>> {
  return { "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture };
}

/**
 * A patch of the node's status and whether it says more than that the node still lives. Pure.
 * @param machine labels that the Node has in any case
 */
export function nodeStatusPatch(
  found: NodeObject,
  status: Readonly<Record<string, unknown>>,
  machine: Readonly<Record<string, string>>,
): { readonly patch: object | undefined; readonly news: boolean } {
  const before = Object.fromEntries(Object.entries(found.status ?? {}).filter(([name]) => Object.hasOwn(status, name)));
  // Devices' capacity is kept, and so are the conditions of others.
  const kept = { ...status, ...keptResources(found, status), conditions: withForeign(found, status) };
  const patch = strategicPatch(before, kept, mergeKeys);
  const labels = missing(found.metadata.labels, machine);
  const isRelabelled = Object.keys(labels).length > 0;
  const still = (value: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
    ...value,
    conditions: (value["conditions"] as readonly NodeCondition[] | undefined)?.map(
      ({ lastHeartbeatTime: _beat, ...condition }) => condition,
    ),
  });
  const news = strategicPatch(still(before), still(kept), mergeKeys) !== undefined;
  if (patch === undefined && !isRelabelled) return { patch: undefined, news };
  const metadata = isRelabelled ? { metadata: { labels } } : {};
  return { patch: { ...metadata, ...(patch && { status: patch }) }, news: news || isRelabelled };
}

function withForeign(found: NodeObject, status: Readonly<Record<string, unknown>>): readonly NodeCondition[] {
  const own = status["conditions"] as readonly NodeCondition[];
  const foreign = (found.status?.conditions ?? []).filter(({ type }) => own.every((each) => each.type !== type));
  return [...foreign, ...own];
}

function keptResources(found: NodeObject, status: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // Somebody gives the node capacity alone: all of that is for pods (upstream's MachineInfo).
  const extended = Object.entries(found.status?.capacity ?? {}).filter(([resource]) => isExtended(resource));
  const withExtended = (own: unknown): Record<string, string> => ({
    ...Object.fromEntries(extended),
    ...(own as Record<string, string>),
  });
  return { capacity: withExtended(status["capacity"]), allocatable: withExtended(status["allocatable"]) };
}
