import * as z from "zod";
import { Int32, IntOrString, LabelSelector, ObjectMeta, OptionalText, Quantity, StringMap } from "./meta.ts";

const LocalObjectReference = z.strictObject({ name: OptionalText });
const KeyToPath = z.strictObject({ key: z.string(), path: z.string(), mode: Int32.optional() });

const ObjectFieldSelector = z.strictObject({ apiVersion: OptionalText, fieldPath: z.string() });
export const ResourceFieldSelector = z.strictObject({
  containerName: OptionalText,
  resource: z.string(),
  divisor: Quantity.optional(),
});

const DownwardAPIFile = z.strictObject({
  path: z.string(),
  fieldRef: ObjectFieldSelector.optional(),
  resourceFieldRef: ResourceFieldSelector.optional(),
  mode: Int32.optional(),
});

const ConfigMapSource = {
  name: OptionalText,
  items: z.array(KeyToPath).optional(),
  optional: z.boolean().optional(),
};

const VolumeProjection = z.strictObject({
  secret: z.strictObject(ConfigMapSource).optional(),
  configMap: z.strictObject(ConfigMapSource).optional(),
  downwardAPI: z.strictObject({ items: z.array(DownwardAPIFile).optional() }).optional(),
  serviceAccountToken: z
    .strictObject({ audience: OptionalText, expirationSeconds: z.int().optional(), path: z.string() })
    .optional(),
  clusterTrustBundle: z
    .strictObject({
      name: z.string().optional(),
      signerName: z.string().optional(),
      labelSelector: LabelSelector.optional(),
      optional: z.boolean().optional(),
      path: z.string(),
    })
    .optional(),
  podCertificate: z
    .strictObject({
      signerName: z.string(),
      keyType: z.string(),
      maxExpirationSeconds: Int32.optional(),
      credentialBundlePath: OptionalText,
      keyPath: OptionalText,
      certificateChainPath: OptionalText,
      userAnnotations: StringMap.optional(),
    })
    .optional(),
});

const PersistentVolumeClaimTemplate = z.strictObject({
  metadata: ObjectMeta.optional(),
  spec: z.record(z.string(), z.unknown()),
});

/** Volume types that need a driver or a removed plugin: parsed loosely, refused by name at admission. */
const Foreign = z.record(z.string(), z.unknown()).optional();

/** corev1.Volume. */
export const Volume = z.strictObject({
  name: z.string(),
  emptyDir: z.strictObject({ medium: OptionalText, sizeLimit: Quantity.optional() }).optional(),
  hostPath: z.strictObject({ path: z.string(), type: OptionalText }).optional(),
  configMap: z.strictObject({ ...ConfigMapSource, defaultMode: Int32.optional() }).optional(),
  secret: z
    .strictObject({
      secretName: OptionalText,
      items: z.array(KeyToPath).optional(),
      defaultMode: Int32.optional(),
      optional: z.boolean().optional(),
    })
    .optional(),
  downwardAPI: z.strictObject({ items: z.array(DownwardAPIFile).optional(), defaultMode: Int32.optional() }).optional(),
  projected: z
    .strictObject({ sources: z.array(VolumeProjection).optional(), defaultMode: Int32.optional() })
    .optional(),
  image: z.strictObject({ reference: OptionalText, pullPolicy: OptionalText }).optional(),
  persistentVolumeClaim: z.strictObject({ claimName: z.string(), readOnly: z.boolean().optional() }).optional(),
  ephemeral: z.strictObject({ volumeClaimTemplate: PersistentVolumeClaimTemplate.optional() }).optional(),
  csi: z
    .strictObject({
      driver: z.string(),
      readOnly: z.boolean().optional(),
      fsType: z.string().optional(),
      volumeAttributes: StringMap.optional(),
      nodePublishSecretRef: LocalObjectReference.optional(),
    })
    .optional(),
  nfs: z.strictObject({ server: z.string(), path: z.string(), readOnly: z.boolean().optional() }).optional(),
  iscsi: Foreign,
  fc: Foreign,
  gitRepo: Foreign,
  flexVolume: Foreign,
  awsElasticBlockStore: Foreign,
  azureDisk: Foreign,
  azureFile: Foreign,
  cephfs: Foreign,
  cinder: Foreign,
  flocker: Foreign,
  gcePersistentDisk: Foreign,
  glusterfs: Foreign,
  photonPersistentDisk: Foreign,
  portworxVolume: Foreign,
  quobyte: Foreign,
  rbd: Foreign,
  scaleIO: Foreign,
  storageos: Foreign,
  vsphereVolume: Foreign,
});

export const VolumeMount = z.strictObject({
  name: z.string(),
  mountPath: z.string(),
  readOnly: z.boolean().optional(),
  recursiveReadOnly: z.string().optional(),
  subPath: OptionalText,
  subPathExpr: OptionalText,
  mountPropagation: z.string().optional(),
});

export const EnvVarSource = z.strictObject({
  fieldRef: ObjectFieldSelector.optional(),
  resourceFieldRef: ResourceFieldSelector.optional(),
  configMapKeyRef: z.strictObject({ name: OptionalText, key: z.string(), optional: z.boolean().optional() }).optional(),
  secretKeyRef: z.strictObject({ name: OptionalText, key: z.string(), optional: z.boolean().optional() }).optional(),
  fileKeyRef: z
    .strictObject({ volumeName: z.string(), path: z.string(), key: z.string(), optional: z.boolean().optional() })
    .optional(),
});

export const HttpGetAction = z.strictObject({
  path: OptionalText,
  port: IntOrString,
  host: OptionalText,
  scheme: OptionalText,
  httpHeaders: z.array(z.strictObject({ name: z.string(), value: z.string().default("") })).optional(),
});

export type Volume = z.infer<typeof Volume>;
export type VolumeMount = z.infer<typeof VolumeMount>;
export type EnvVarSource = z.infer<typeof EnvVarSource>;
export type HttpGetAction = z.infer<typeof HttpGetAction>;
