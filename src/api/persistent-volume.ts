import * as z from "zod";
import { StringMap } from "./meta.ts";

const Text = z.string().optional();

export const VolumeMode = z.enum(["Filesystem", "Block"]);
export type VolumeMode = z.infer<typeof VolumeMode>;

const SecretReference = z.looseObject({ name: Text, namespace: Text }).optional();

/** corev1.CSIPersistentVolumeSource. */
export const CsiPersistentVolumeSource = z.looseObject({
  driver: z.string(),
  volumeHandle: z.string(),
  readOnly: z.boolean().optional(),
  fsType: Text,
  volumeAttributes: StringMap.optional(),
  nodeStageSecretRef: SecretReference,
  nodePublishSecretRef: SecretReference,
  nodeExpandSecretRef: SecretReference,
});

const NodeSelectorRequirement = z.looseObject({
  key: z.string(),
  operator: z.string(),
  values: z.array(z.string()).optional(),
});

const NodeSelectorTerm = z.looseObject({
  matchExpressions: z.array(NodeSelectorRequirement).optional(),
  matchFields: z.array(NodeSelectorRequirement).optional(),
});

const Disk = { fsType: Text, readOnly: z.boolean().optional() };
const PartOfDisk = { ...Disk, partition: z.number().optional() };

/** Of drivers that have CSI successors, as far as those need it. */
const inTreeSources = {
  awsElasticBlockStore: z.looseObject({ volumeID: z.string(), ...PartOfDisk }).optional(),
  azureDisk: z.looseObject({ diskName: Text, diskURI: z.string(), ...Disk, cachingMode: Text, kind: Text }).optional(),
  azureFile: z
    .looseObject({
      secretName: z.string(),
      shareName: z.string(),
      secretNamespace: z.string().nullish(),
      readOnly: Disk.readOnly,
    })
    .optional(),
  cinder: z.looseObject({ volumeID: z.string(), ...Disk }).optional(),
  gcePersistentDisk: z.looseObject({ pdName: z.string(), ...PartOfDisk }).optional(),
  portworxVolume: z.looseObject({ volumeID: z.string(), ...Disk }).optional(),
  vsphereVolume: z.looseObject({ volumePath: z.string(), fsType: Text, storagePolicyName: Text }).optional(),
};

/** corev1.PersistentVolume as a kubelet reads it; sources of other drivers stay as they are. */
export const PersistentVolume = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    uid: Text,
    resourceVersion: Text,
    labels: StringMap.optional(),
    annotations: StringMap.optional(),
  }),
  spec: z.looseObject({
    capacity: StringMap.optional(),
    accessModes: z.array(z.string()).optional(),
    claimRef: z.looseObject({ namespace: Text, name: Text, uid: Text }).optional(),
    mountOptions: z.array(z.string()).optional(),
    volumeMode: VolumeMode.optional(),
    nodeAffinity: z
      .looseObject({ required: z.looseObject({ nodeSelectorTerms: z.array(NodeSelectorTerm) }).optional() })
      .optional(),
    csi: CsiPersistentVolumeSource.optional(),
    hostPath: z.looseObject({ path: z.string(), type: Text }).optional(),
    nfs: z.looseObject({ server: z.string(), path: z.string(), readOnly: z.boolean().optional() }).optional(),
    local: z.looseObject({ path: z.string(), fsType: Text }).optional(),
    ...inTreeSources,
  }),
});
export type PersistentVolume = z.infer<typeof PersistentVolume>;
