/** How a strategic merge patch merges a list. Lists without an entry are replaced whole. */
export interface MergeKey {
  /** The member that tells items apart; undefined: the items are plain values, merged as a set. */
  readonly key?: string;
}

const common: Readonly<Record<string, MergeKey>> = {
  "metadata.ownerReferences": { key: "uid" },
  "metadata.finalizers": {},
};

function container(path: string): Record<string, MergeKey> {
  return {
    [path]: { key: "name" },
    [`${path}.ports`]: { key: "containerPort" },
    [`${path}.env`]: { key: "name" },
    [`${path}.volumeMounts`]: { key: "mountPath" },
    [`${path}.volumeDevices`]: { key: "devicePath" },
  };
}

/** `containerStatuses` is replaced whole; so are lists within it. */
const pod: Readonly<Record<string, MergeKey>> = {
  ...container("spec.containers"),
  ...container("spec.initContainers"),
  ...container("spec.ephemeralContainers"),
  "spec.volumes": { key: "name" },
  "spec.imagePullSecrets": { key: "name" },
  "spec.hostAliases": { key: "ip" },
  "spec.topologySpreadConstraints": { key: "topologyKey" },
  "spec.schedulingGates": { key: "name" },
  "spec.resourceClaims": { key: "name" },
  "status.conditions": { key: "type" },
  "status.hostIPs": { key: "ip" },
  "status.podIPs": { key: "ip" },
  "status.resourceClaimStatuses": { key: "name" },
};

/** By kind: what `patchStrategy` and `patchMergeKey` of the API's types say (k8s.io/api, v1.36). */
const byKind: Readonly<Record<string, Readonly<Record<string, MergeKey>>>> = {
  Pod: pod,
  Node: {
    "spec.podCIDRs": {},
    "status.conditions": { key: "type" },
    "status.addresses": { key: "type" },
  },
  Namespace: { "status.conditions": { key: "type" } },
  PersistentVolumeClaim: { "status.conditions": { key: "type" } },
  Service: { "spec.ports": { key: "port" }, "status.conditions": { key: "type" } },
  ServiceAccount: { secrets: { key: "name" } },
  CSINode: { "spec.drivers": { key: "name" } },
};

/** @param path names of the members from the object down, list indices left out: `spec.containers.env` */
export function mergeKeyOf(kind: string, path: string): MergeKey | undefined {
  return byKind[kind]?.[path] ?? common[path];
}
