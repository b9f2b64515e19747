/** How a strategic merge patch merges a list. Lists without an entry are replaced as a whole. */
export interface MergeKey {
  /** The member that identifies items; undefined: plain values, merged as a set. */
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

/** `containerStatuses` and lists within it are replaced as a whole. */
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

/** By kind: `patchStrategy` and `patchMergeKey` of the API's types (k8s.io/api, v1.36). */
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

/** @param path member names without list indices: `spec.containers.env` */
export function mergeKeyOf(kind: string, path: string): MergeKey | undefined {
  return byKind[kind]?.[path] ?? common[path];
}
