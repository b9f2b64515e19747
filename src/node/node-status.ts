import { type MergeKeys, strategicPatch } from "../api-client/strategic-patch.ts";
import type { NameOf } from "../journal/vocabulary.ts";
import type { NodeCondition, NodeObject } from "../api/node.ts";
import { formatTime } from "../base/time.ts";
import { type Pressure, pressures } from "../eviction/pressure.ts";
import type { CloudFacts } from "../cloud/cloud-resource-sync.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { isExtended, isForeign } from "./extended-resources.ts";
import { allocatable, type CapacitySettings, nodeCapacity } from "./node-capacity.ts";
import type { NodeFacts } from "./node-facts.ts";
import { metadataPatch, type WantedMetadata } from "./node-metadata.ts";

/** Constant while podwright runs. */
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
  /** `--cloud-provider=external`: a cloud controller manager sets the addresses. */
  readonly externalCloud?: ExternalCloud;
}

/** The Node's runtime information. */
export type RuntimeFacts = Pick<RuntimeInfo, "name" | "version" | "handlers" | "supplementalGroupsPolicy">;

export interface ExternalCloud {
  /** Specific addresses of `--node-ip`: a hint for the controller. */
  readonly nodeIps: readonly string[];
  /** `--node-ip` is set: the node reports its addresses until the controller does. */
  readonly saysAddresses: boolean;
}

export interface NodeImage {
  readonly names: readonly string[];
  readonly sizeBytes: number;
}

/** The changing part. */
export interface NodeObservation {
  /** Wall clock, milliseconds. */
  readonly now: number;
  /** The machine's, or those of `--node-ip`. */
  readonly addresses: readonly string[];
  readonly runtime: RuntimeFacts;
  /** Why the node is not ready; empty: ready. */
  readonly problems: readonly string[];
  readonly images: readonly NodeImage[];
  /** The pressure conditions. */
  readonly pressures?: readonly Pressure[] | undefined;
  /** The cloud's metadata, if available. */
  readonly cloud?: CloudFacts | undefined;
  /** Attachable volumes that must not be detached. */
  readonly volumesInUse: readonly string[];
  /** Pods of an earlier run may not have reported their volumes yet: its list counts too. */
  readonly keepsVolumesInUse?: boolean;
}

/** NodeStatus lists that the server merges; addresses may repeat their key, so they are replaced. */
const mergeKeys: MergeKeys = {
  conditions: { key: "type", anyOrder: true },
  addresses: { key: "type", replace: true },
};

export interface Address {
  readonly type: string;
  readonly address: string;
}

/** The parts of an earlier status that the next one depends on. */
interface WrittenStatus {
  readonly conditions?: readonly NodeCondition[] | undefined;
  readonly addresses?: readonly Address[] | undefined;
  readonly volumesInUse?: readonly string[] | undefined;
}

/**
 * A node's addresses: the cloud's, else the machine's. Those of a cloud controller manager are kept, and all of them
 * while the machine has none, as at a start before its network. Pure.
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
  if (addresses.length === 0 && written.length > 0) return written;
  return [...addresses.map((address) => ({ type: "InternalIP", address })), hostname];
}

export type NodeStatus = Readonly<Record<string, unknown>> & { readonly addresses: readonly Address[] };

/** The kubelet's part of a node status; conditions of others are excluded. Pure. */
export function nodeStatus(
  identity: NodeIdentity,
  observed: NodeObservation,
  previous: WrittenStatus = {},
): NodeStatus {
  const { facts } = identity;
  const { runtime } = observed;
  const earlier = previous.volumesInUse ?? [];
  const volumesInUse =
    observed.keepsVolumesInUse === true ? union(observed.volumesInUse, earlier) : observed.volumesInUse;
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
    // An empty list is not stored: it is sent only to clear another.
    ...(volumesInUse.length + earlier.length > 0 && { volumesInUse }),
  };
}

function union(some: readonly string[], others: readonly string[]): readonly string[] {
  return [...new Set([...some, ...others])].toSorted();
}

/** Declared features of this node (KEP-5328), sorted. */
const declaredFeatures = [
  "ExtendWebSocketsToKubelet",
  "InPlacePodLevelResourcesVerticalScaling",
  "InPlacePodVerticalScalingInitContainers",
  "RestartAllContainersOnContainerExits",
];

interface Finding {
  readonly status: NodeCondition["status"];
  readonly reason: string;
  readonly message: string;
}

/** The texts of a pressure condition and its events. */
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

/** Events for changed pressure and readiness conditions, in the order of the conditions. Pure. */
export function conditionEvents(before: NodeObject | undefined, after: NodeObject): NameOf<"note">[] {
  const statusOf = (node: NodeObject | undefined, type: string): string | undefined =>
    node?.status?.conditions?.find((condition) => condition.type === type)?.status;
  const events = pressures.flatMap((pressure) => {
    const status = statusOf(after, pressure);
    if (status === undefined || status === statusOf(before, pressure)) return [];
    return [pressureWords[pressure][status === "True" ? "under" : "free"][2]];
  });
  const readiness = statusOf(after, "Ready");
  const was = statusOf(before, "Ready");
  // For a new Node only its readiness is an event.
  if (readiness === was || (was === undefined && readiness !== "True")) return events;
  return [...events, readiness === "True" ? "NodeReady" : "NodeNotReady"];
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

/**
 * OS and architecture labels and the cloud controller's hint: corrected with each status (upstream's updateNode and its
 * address setter). Pure.
 */
export function machineMetadata({
  architecture,
  externalCloud,
}: Pick<NodeIdentity, "architecture" | "externalCloud">): WantedMetadata {
  return {
    labels: { "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture },
    annotations: { [providedNodeIp]: externalCloud?.nodeIps.join(",") || null },
  };
}

const providedNodeIp = "alpha.kubernetes.io/provided-node-ip";

/**
 * A patch of the node's status and whether it is more than a heartbeat. Pure.
 * @param machine the Node's metadata in any case
 */
export function nodeStatusPatch(
  found: NodeObject,
  status: Readonly<Record<string, unknown>>,
  machine: WantedMetadata,
): { readonly patch: object | undefined; readonly news: boolean } {
  const before = Object.fromEntries(Object.entries(found.status ?? {}).filter(([name]) => Object.hasOwn(status, name)));
  // Device capacity and conditions of others are kept.
  const kept = { ...status, ...keptResources(found, status), conditions: withForeign(found, status) };
  const patch = strategicPatch(before, kept, mergeKeys);
  const metadata = metadataPatch(found, machine);
  const still = (value: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
    ...value,
    conditions: (value["conditions"] as readonly NodeCondition[] | undefined)?.map(
      ({ lastHeartbeatTime: _beat, ...condition }) => condition,
    ),
  });
  const news = strategicPatch(still(before), still(kept), mergeKeys) !== undefined;
  if (patch === undefined && metadata === undefined) return { patch: undefined, news };
  const whole = { ...(metadata && { metadata }), ...(patch && { status: patch }) };
  return { patch: whole, news: news || metadata !== undefined };
}

function withForeign(found: NodeObject, status: Readonly<Record<string, unknown>>): readonly NodeCondition[] {
  const own = status["conditions"] as readonly NodeCondition[];
  const foreign = (found.status?.conditions ?? []).filter(({ type }) => own.every((each) => each.type !== type));
  return [...foreign, ...own];
}

function keptResources(found: NodeObject, status: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { capacity = {}, allocatable: ofPods = {} } = found.status ?? {};
  const foreign = Object.entries(capacity).filter(([resource]) => isForeign(resource));
  const kept = Object.entries(ofPods).filter(([resource]) => isForeign(resource) && !isExtended(resource));
  // Capacity added by others is allocatable as a whole (upstream's MachineInfo).
  return {
    capacity: { ...Object.fromEntries(foreign), ...(status["capacity"] as object) },
    allocatable: { ...Object.fromEntries([...kept, ...foreign]), ...(status["allocatable"] as object) },
  };
}
