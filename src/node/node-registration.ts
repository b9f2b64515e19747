import type { NodeObject } from "../api/node.ts";
import type { CloudFacts } from "../cloud/cloud-resource-sync.ts";
import { type StaleResources, withoutStale } from "./extended-resources.ts";
import { metadataPatch, type WantedMetadata } from "./node-metadata.ts";
import { machineMetadata, type NodeIdentity, type NodeObservation, nodeStatus } from "./node-status.ts";

/** The Node at its registration. Pure. */
export function newNode(
  identity: NodeIdentity,
  observed: NodeObservation,
  registration: NodeRegistration,
): Record<string, unknown> {
  const { labels, annotations } = ownMetadata(identity, registration, observed.cloud);
  const given = Object.fromEntries(Object.entries(annotations).filter(([, value]) => value !== null));
  const taints = identity.externalCloud === undefined ? registration.taints : [...registration.taints, uninitialized];
  const providerId = registration.providerId || (observed.cloud?.providerId ?? "");
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: identity.name, labels, annotations: given },
    spec: { ...(taints.length > 0 && { taints }), ...(providerId !== "" && { providerID: providerId }) },
    status: nodeStatus(identity, observed),
  };
}

/** Keeps pods away until the cloud controller manager knows the node; it takes it off. */
const uninitialized = { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" };
const controllerAttachesVolumes = "volumes.kubernetes.io/controller-managed-attach-detach";

/** What is said at the registration alone. */
export interface NodeRegistration {
  /** registerNode: false to wait until another client creates the Node. */
  readonly enabled: boolean;
  /** registerWithTaints. */
  readonly taints: readonly object[];
  /** --node-labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly providerId: string;
  /** Whether volumes are attached by the controller (enableControllerAttachDetach). */
  readonly controllerAttaches: boolean;
  /** Extended resources that an earlier run left on an existing Node. */
  readonly staleResources: StaleResources;
}

/** The Node's labels and annotations from the kubelet; null: removes what an earlier run may have set. Pure. */
export function ownMetadata(
  identity: NodeIdentity,
  { labels, controllerAttaches }: NodeRegistration,
  cloud?: Pick<CloudFacts, "labels">,
): WantedMetadata {
  const { name, architecture } = identity;
  const machine = machineMetadata(identity);
  return {
    labels: {
      "kubernetes.io/hostname": name,
      ...machine.labels,
      "beta.kubernetes.io/os": "linux",
      "beta.kubernetes.io/arch": architecture,
      ...cloud?.labels,
      ...labels,
    },
    annotations: { ...machine.annotations, [controllerAttachesVolumes]: controllerAttaches ? "true" : null },
  };
}

/**
 * The labels and annotations that an existing Node lacks, and the extended resources that an earlier run left on it and
 * that are gone; undefined: no change. Pure.
 */
export function reconcilePatch(
  found: NodeObject,
  identity: NodeIdentity,
  registration: NodeRegistration,
  cloud?: Pick<CloudFacts, "labels">,
): object | undefined {
  const { labels, annotations } = ownMetadata(identity, registration, cloud);
  const metadata = metadataPatch(found, { labels: described(labels), annotations });
  const zeros = withoutStale(found, registration.staleResources);
  if (metadata === undefined && zeros === undefined) return undefined;
  return { ...(metadata && { metadata }), ...(zeros && { status: { capacity: zeros, allocatable: zeros } }) };
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

/** The cloud's changes to a registered Node beyond its status: labels and its ID; undefined: none. Pure. */
export function cloudPatch(
  found: NodeObject,
  cloud: Pick<CloudFacts, "labels" | "providerId"> | undefined,
  { labels: given }: Pick<NodeRegistration, "labels">,
): object | undefined {
  if (cloud === undefined) return undefined;
  const metadata = metadataPatch(found, { labels: described({ ...cloud.labels, ...given }), annotations: {} });
  // An ID is permanent.
  const isNew = (found.spec?.providerID ?? "") === "";
  if (metadata === undefined && !isNew) return undefined;
  return {
    ...(metadata && { metadata }),
    ...(isNew && { spec: { providerID: cloud.providerId } }),
  };
}
