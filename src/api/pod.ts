import * as z from "zod";
import type { PodUid } from "../base/ids.ts";
import {
  Container,
  EphemeralContainer,
  ResourceRequirements,
  SeccompProfile,
  SELinuxOptions,
  WindowsOptions,
} from "./container.ts";
import { Int32, ObjectMeta, optionalChoice, OptionalText, Quantity, StringMap } from "./meta.ts";
import { Affinity, SchedulingGate, SchedulingGroup, TopologySpreadConstraint } from "./scheduling.ts";
import { Volume } from "./volume.ts";

export const Toleration = z.strictObject({
  key: OptionalText,
  operator: OptionalText,
  value: OptionalText,
  effect: OptionalText,
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
  sysctls: z.array(z.strictObject({ name: z.string(), value: z.string().default("") })).optional(),
  seccompProfile: SeccompProfile.optional(),
  appArmorProfile: SeccompProfile.optional(),
});

const PodDNSConfig = z.strictObject({
  nameservers: z.array(z.string()).optional(),
  searches: z.array(z.string()).optional(),
  options: z.array(z.strictObject({ name: OptionalText, value: z.string().optional() })).optional(),
});

/** corev1.PodSpec. */
export const PodSpec = z.strictObject({
  volumes: z.array(Volume).optional(),
  initContainers: z.array(Container).optional(),
  containers: z.array(Container),
  ephemeralContainers: z.array(EphemeralContainer).optional(),
  restartPolicy: optionalChoice(["Always", "OnFailure", "Never"]),
  terminationGracePeriodSeconds: z.int().optional(),
  activeDeadlineSeconds: z.int().optional(),
  dnsPolicy: optionalChoice(["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
  dnsConfig: PodDNSConfig.optional(),
  nodeSelector: StringMap.optional(),
  nodeName: OptionalText,
  serviceAccountName: OptionalText,
  serviceAccount: OptionalText,
  automountServiceAccountToken: z.boolean().optional(),
  hostNetwork: z.boolean().optional(),
  hostPID: z.boolean().optional(),
  hostIPC: z.boolean().optional(),
  hostUsers: z.boolean().optional(),
  shareProcessNamespace: z.boolean().optional(),
  securityContext: PodSecurityContext.optional(),
  imagePullSecrets: z.array(z.strictObject({ name: OptionalText })).optional(),
  hostname: OptionalText,
  hostnameOverride: z.string().optional(),
  subdomain: OptionalText,
  setHostnameAsFQDN: z.boolean().optional(),
  affinity: Affinity.optional(),
  schedulerName: OptionalText,
  schedulingGates: z.array(SchedulingGate).optional(),
  schedulingGroup: SchedulingGroup.optional(),
  topologySpreadConstraints: z.array(TopologySpreadConstraint).optional(),
  tolerations: z.array(Toleration).optional(),
  hostAliases: z.array(z.strictObject({ ip: z.string(), hostnames: z.array(z.string()).optional() })).optional(),
  priorityClassName: OptionalText,
  priority: Int32.optional(),
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
  type: OptionalText,
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
    readonly uid: PodUid;
  };
  readonly spec: PodSpec;
}
