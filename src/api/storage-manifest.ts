import * as z from "zod";
import { LabelSelector, ObjectMeta, OptionalText, Quantity, StringMap } from "./meta.ts";
import { CsiPersistentVolumeSource, VolumeMode } from "./persistent-volume.ts";

/** Parsed loosely, and refused by name. */
const Foreign = z.unknown().optional();
const Quantities = z.record(z.string(), Quantity);

/** corev1.PersistentVolumeClaimSpec. */
export const ClaimSpec = z.strictObject({
  accessModes: z.array(z.string()).optional(),
  selector: LabelSelector.optional(),
  resources: z.strictObject({ requests: Quantities.optional(), limits: Quantities.optional() }).optional(),
  volumeName: OptionalText,
  /** Empty: a volume without a class. */
  storageClassName: z.string().optional(),
  volumeMode: VolumeMode.optional(),
  dataSource: Foreign,
  dataSourceRef: Foreign,
  volumeAttributesClassName: z.string().optional(),
});

/** What a manifest may hold: corev1.PersistentVolumeClaim. A status is accepted and ignored. */
export const ClaimManifest = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("PersistentVolumeClaim"),
  metadata: ObjectMeta,
  spec: ClaimSpec,
  status: z.unknown().optional(),
});

const ObjectReference = z.strictObject({
  apiVersion: OptionalText,
  kind: OptionalText,
  namespace: OptionalText,
  name: OptionalText,
  uid: OptionalText,
  resourceVersion: OptionalText,
  fieldPath: OptionalText,
});

const NodeSelectorRequirement = z.strictObject({
  key: z.string(),
  operator: z.string(),
  values: z.array(z.string()).optional(),
});

const NodeSelectorTerm = z.strictObject({
  matchExpressions: z.array(NodeSelectorRequirement).optional(),
  matchFields: z.array(NodeSelectorRequirement).optional(),
});

/** Sources whose drivers Kubernetes took out or turned into CSI drivers. */
export const removedVolumeSources = [
  "awsElasticBlockStore",
  "azureDisk",
  "azureFile",
  "cephfs",
  "cinder",
  "flocker",
  "gcePersistentDisk",
  "glusterfs",
  "photonPersistentDisk",
  "portworxVolume",
  "quobyte",
  "rbd",
  "scaleIO",
  "storageos",
  "vsphereVolume",
] as const;

/** Sources of PersistentVolumes that nobody mounts without a cluster. */
export const foreignVolumeSources = [...removedVolumeSources, "fc", "flexVolume", "iscsi", "nfs"] as const;

/** What a manifest may hold: corev1.PersistentVolume. A status is accepted and ignored. */
export const VolumeManifest = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("PersistentVolume"),
  metadata: ObjectMeta,
  spec: z.strictObject({
    capacity: Quantities.optional(),
    accessModes: z.array(z.string()).optional(),
    claimRef: ObjectReference.optional(),
    persistentVolumeReclaimPolicy: OptionalText,
    storageClassName: OptionalText,
    mountOptions: z.array(z.string()).optional(),
    volumeMode: VolumeMode.optional(),
    nodeAffinity: z
      .strictObject({ required: z.strictObject({ nodeSelectorTerms: z.array(NodeSelectorTerm) }).optional() })
      .optional(),
    volumeAttributesClassName: z.string().optional(),
    hostPath: z.strictObject({ path: z.string(), type: z.string().optional() }).optional(),
    local: z.strictObject({ path: z.string(), fsType: z.string().optional() }).optional(),
    csi: CsiPersistentVolumeSource.optional(),
    ...(Object.fromEntries(foreignVolumeSources.map((source) => [source, Foreign])) as Record<
      (typeof foreignVolumeSources)[number],
      typeof Foreign
    >),
  }),
  status: z.unknown().optional(),
});

/** What a manifest may hold: storagev1.StorageClass. */
export const ClassManifest = z.strictObject({
  apiVersion: z.literal("storage.k8s.io/v1"),
  kind: z.literal("StorageClass"),
  metadata: ObjectMeta,
  provisioner: z.string(),
  parameters: StringMap.optional(),
  reclaimPolicy: OptionalText,
  mountOptions: z.array(z.string()).optional(),
  allowVolumeExpansion: z.boolean().optional(),
  volumeBindingMode: OptionalText,
  allowedTopologies: z.array(z.unknown()).optional(),
});

/** What a manifest may hold: storagev1.CSIDriver. */
export const DriverManifest = z.strictObject({
  apiVersion: z.literal("storage.k8s.io/v1"),
  kind: z.literal("CSIDriver"),
  metadata: ObjectMeta,
  spec: z.strictObject({
    attachRequired: z.boolean().optional(),
    podInfoOnMount: z.boolean().optional(),
    storageCapacity: z.boolean().optional(),
    volumeLifecycleModes: z.array(z.enum(["Persistent", "Ephemeral"])).optional(),
    fsGroupPolicy: z.enum(["ReadWriteOnceWithFSType", "File", "None"]).optional(),
    tokenRequests: z.array(z.unknown()).optional(),
    requiresRepublish: z.boolean().optional(),
    seLinuxMount: z.boolean().optional(),
    nodeAllocatableUpdatePeriodSeconds: z.int().optional(),
    serviceAccountTokenInSecrets: z.boolean().optional(),
  }),
});

export type ClaimSpec = z.infer<typeof ClaimSpec>;
export type ClaimManifest = z.infer<typeof ClaimManifest>;
export type VolumeManifest = z.infer<typeof VolumeManifest>;
export type ClassManifest = z.infer<typeof ClassManifest>;
export type DriverManifest = z.infer<typeof DriverManifest>;
/** The objects behind claims. */
export type StorageManifest = ClaimManifest | VolumeManifest | ClassManifest | DriverManifest;
