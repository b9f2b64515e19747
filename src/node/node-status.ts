import { type MergeKeys, strategicPatch } from "../api-client/strategic-patch.ts";
import type { NodeCondition, NodeObject } from "../api/node.ts";
import { formatTime } from "../base/time.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { allocatable, type CapacitySettings, nodeCapacity } from "./node-capacity.ts";
import type { NodeFacts } from "./node-facts.ts";

/** What does not change while podwright runs. */
export interface NodeIdentity {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly facts: NodeFacts;
  /** As Go has it: `amd64`. */
  readonly architecture: string;
  /** Of the kubelet's API; 0: none is served. */
  readonly apiPort: number;
  /** `v1.36.2+podwright.0.1.0` */
  readonly kubeletVersion: string;
  readonly runtime: Pick<RuntimeInfo, "name" | "version" | "handlers" | "supplementalGroupsPolicy">;
  readonly capacity: CapacitySettings;
}

export interface NodeImage {
  readonly names: readonly string[];
  readonly sizeBytes: number;
}

/** What does. */
export interface NodeObservation {
  /** Wall clock, milliseconds. */
  readonly now: number;
  /** Why the node can't run pods; none: it is ready. */
  readonly problems: readonly string[];
  readonly images: readonly NodeImage[];
}

/** Lists of NodeStatus that the server merges; addresses may repeat their key, so they are replaced. */
const mergeKeys: MergeKeys = {
  conditions: { key: "type", anyOrder: true },
  addresses: { key: "type", replace: true },
};

/** The status that a kubelet writes of its node; conditions of others are not in it. Pure. */
export function nodeStatus(
  identity: NodeIdentity,
  observed: NodeObservation,
  previous: readonly NodeCondition[] = [],
): Record<string, unknown> {
  const { facts, runtime } = identity;
  const capacity = nodeCapacity(facts, identity.capacity);
  return {
    addresses: [
      ...identity.addresses.map((address) => ({ type: "InternalIP", address })),
      { type: "Hostname", address: identity.name },
    ],
    capacity,
    allocatable: allocatable(facts, capacity, identity.capacity),
    conditions: nodeConditions(observed, previous),
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
  };
}

interface Finding {
  readonly status: NodeCondition["status"];
  readonly reason: string;
  readonly message: string;
}

function nodeConditions({ problems, now }: NodeObservation, previous: readonly NodeCondition[]): NodeCondition[] {
  const findings: readonly (readonly [string, Finding])[] = [
    [
      "MemoryPressure",
      {
        status: "False",
        reason: "KubeletHasSufficientMemory",
        message: "kubelet has sufficient memory available",
      },
    ],
    ["DiskPressure", { status: "False", reason: "KubeletHasNoDiskPressure", message: "kubelet has no disk pressure" }],
    [
      "PIDPressure",
      { status: "False", reason: "KubeletHasSufficientPID", message: "kubelet has sufficient PID available" },
    ],
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
  const { labels, annotations } = ownMetadata(identity, registration);
  const { taints, providerId } = registration;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: identity.name, labels, annotations },
    spec: { ...(taints.length > 0 && { taints }), ...(providerId !== "" && { providerID: providerId }) },
    status: nodeStatus(identity, observed),
  };
}

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

function ownMetadata(
  { name, architecture }: NodeIdentity,
  { labels, controllerAttaches }: NodeRegistration,
): { readonly labels: Readonly<Record<string, string>>; readonly annotations: Readonly<Record<string, string>> } {
  return {
    labels: {
      "kubernetes.io/hostname": name,
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": architecture,
      "beta.kubernetes.io/os": "linux",
      "beta.kubernetes.io/arch": architecture,
      ...labels,
    },
    annotations: {
      ...(controllerAttaches && { "volumes.kubernetes.io/controller-managed-attach-detach": "true" }),
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
): object | undefined {
  const { labels, annotations } = ownMetadata(identity, registration);
  const missing = (has: Readonly<Record<string, string>> = {}, wanted: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(wanted).filter(([key, value]) => has[key] !== value));
  const patch = {
    labels: missing(found.metadata.labels, labels),
    annotations: missing(found.metadata.annotations, annotations),
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

/** Resources of devices: names with a domain that is not Kubernetes' own. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}

/** A patch of the node's status and whether it says more than that the node still lives. Pure. */
export function nodeStatusPatch(
  found: NodeObject,
  status: Readonly<Record<string, unknown>>,
): { readonly patch: object | undefined; readonly news: boolean } {
  const before = Object.fromEntries(Object.entries(found.status ?? {}).filter(([name]) => Object.hasOwn(status, name)));
  // Devices' capacity is kept, and so are the conditions of others.
  const kept = { ...status, ...keptResources(found, status), conditions: withForeign(found, status) };
  const patch = strategicPatch(before, kept, mergeKeys);
  const still = (value: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
    ...value,
    conditions: (value["conditions"] as readonly NodeCondition[] | undefined)?.map(
      ({ lastHeartbeatTime: _beat, ...condition }) => condition,
    ),
  });
  const news = strategicPatch(still(before), still(kept), mergeKeys) !== undefined;
  return { patch: patch && { status: patch }, news };
}

function withForeign(found: NodeObject, status: Readonly<Record<string, unknown>>): readonly NodeCondition[] {
  const own = status["conditions"] as readonly NodeCondition[];
  const foreign = (found.status?.conditions ?? []).filter(({ type }) => own.every((each) => each.type !== type));
  return [...foreign, ...own];
}

function keptResources(found: NodeObject, status: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const keep = (name: "capacity" | "allocatable"): Record<string, string> => {
    const extended = Object.entries(found.status?.[name] ?? {}).filter(([resource]) => isExtended(resource));
    return { ...Object.fromEntries(extended), ...(status[name] as Record<string, string>) };
  };
  return { capacity: keep("capacity"), allocatable: keep("allocatable") };
}
