import { z } from "zod";
import {
  Container,
  EphemeralContainer,
  ResourceRequirements,
  SeccompProfile,
  SELinuxOptions,
  WindowsOptions,
} from "./container.ts";
import { ObjectMeta, Quantity, StringMap } from "./meta.ts";
import { Volume } from "./volume.ts";

/** Fields that only a scheduler reads: accepted as they are. */
const SchedulerOnly = z.unknown().optional();

const Toleration = z.strictObject({
  key: z.string().optional(),
  operator: z.string().optional(),
  value: z.string().optional(),
  effect: z.string().optional(),
  tolerationSeconds: z.int().optional(),
});

const PodSecurityContext = z.strictObject({
  seLinuxOptions: SELinuxOptions.optional(),
  windowsOptions: WindowsOptions.optional(),
  runAsUser: z.int().optional(),
  runAsGroup: z.int().optional(),
  runAsNonRoot: z.boolean().optional(),
  supplementalGroups: z.array(z.int()).optional(),
  supplementalGroupsPolicy: z.enum(["Merge", "Strict"]).optional(),
  fsGroup: z.int().optional(),
  fsGroupChangePolicy: z.string().optional(),
  seLinuxChangePolicy: z.string().optional(),
  sysctls: z.array(z.strictObject({ name: z.string(), value: z.string() })).optional(),
  seccompProfile: SeccompProfile.optional(),
  appArmorProfile: SeccompProfile.optional(),
});

const PodDNSConfig = z.strictObject({
  nameservers: z.array(z.string()).optional(),
  searches: z.array(z.string()).optional(),
  options: z.array(z.strictObject({ name: z.string().optional(), value: z.string().optional() })).optional(),
});

/** corev1.PodSpec. */
export const PodSpec = z.strictObject({
  volumes: z.array(Volume).optional(),
  initContainers: z.array(Container).optional(),
  containers: z.array(Container),
  ephemeralContainers: z.array(EphemeralContainer).optional(),
  restartPolicy: z.enum(["Always", "OnFailure", "Never"]).optional(),
  terminationGracePeriodSeconds: z.int().optional(),
  activeDeadlineSeconds: z.int().optional(),
  dnsPolicy: z.enum(["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]).optional(),
  dnsConfig: PodDNSConfig.optional(),
  nodeSelector: StringMap.optional(),
  nodeName: z.string().optional(),
  serviceAccountName: z.string().optional(),
  serviceAccount: z.string().optional(),
  automountServiceAccountToken: z.boolean().optional(),
  hostNetwork: z.boolean().optional(),
  hostPID: z.boolean().optional(),
  hostIPC: z.boolean().optional(),
  hostUsers: z.boolean().optional(),
  shareProcessNamespace: z.boolean().optional(),
  securityContext: PodSecurityContext.optional(),
  imagePullSecrets: z.array(z.strictObject({ name: z.string().optional() })).optional(),
  hostname: z.string().optional(),
  hostnameOverride: z.string().optional(),
  subdomain: z.string().optional(),
  setHostnameAsFQDN: z.boolean().optional(),
  affinity: SchedulerOnly,
  schedulerName: z.string().optional(),
  schedulingGates: SchedulerOnly,
  schedulingGroup: SchedulerOnly,
  topologySpreadConstraints: SchedulerOnly,
  workloadRef: SchedulerOnly,
  tolerations: z.array(Toleration).optional(),
  hostAliases: z.array(z.strictObject({ ip: z.string(), hostnames: z.array(z.string()).optional() })).optional(),
  priorityClassName: z.string().optional(),
  priority: z.int().optional(),
  preemptionPolicy: z.string().optional(),
  readinessGates: z.array(z.strictObject({ conditionType: z.string() })).optional(),
  runtimeClassName: z.string().optional(),
  enableServiceLinks: z.boolean().optional(),
  overhead: z.record(z.string(), Quantity).optional(),
  os: z.strictObject({ name: z.string() }).optional(),
  resourceClaims: z.array(z.record(z.string(), z.unknown())).optional(),
  resources: ResourceRequirements.optional(),
});

/** What a manifest may hold: corev1.Pod. A status in a manifest is accepted and ignored, as kubelets do. */
export const PodManifest = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("Pod"),
  metadata: ObjectMeta,
  spec: PodSpec,
  status: z.unknown().optional(),
});

export const ConfigMapManifest = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("ConfigMap"),
  metadata: ObjectMeta,
  data: StringMap.optional(),
  /** base64 */
  binaryData: StringMap.optional(),
  immutable: z.boolean().optional(),
});

export const SecretManifest = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("Secret"),
  metadata: ObjectMeta,
  type: z.string().optional(),
  /** base64 */
  data: StringMap.optional(),
  stringData: StringMap.optional(),
  immutable: z.boolean().optional(),
});

export type PodSpec = z.infer<typeof PodSpec>;
export type PodManifest = z.infer<typeof PodManifest>;
export type ConfigMapManifest = z.infer<typeof ConfigMapManifest>;
export type SecretManifest = z.infer<typeof SecretManifest>;

/** A pod as the node works with it: decoded, defaulted, named and with a UID. */
export interface Pod {
  readonly metadata: z.infer<typeof ObjectMeta> & {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
  };
  readonly spec: PodSpec;
}
