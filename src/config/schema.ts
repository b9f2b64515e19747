import * as z from "zod";
import { Int32 } from "../api/meta.ts";
import { durationProblem, parseGoDuration } from "../base/go-duration.ts";

/**
 * KubeletConfiguration (kubelet.config.k8s.io/v1beta1) of Kubernetes 1.36 as written, without apiVersion and kind:
 * types only, every field optional. Meaning and validation are elsewhere (defaults.ts, validate.ts).
 */

const text = z.string();
const flag = z.boolean();
const texts = z.array(text);
const textMap = z.record(text, text);
const isDuration = (value: unknown): boolean => typeof value === "string" && parseGoDuration(value) !== undefined;
const duration = z.custom<string>(isDuration, { error: ({ input }) => durationProblem(input) });
const quantities = z.record(text, z.union([text, z.number()]));

const authentication = z.strictObject({
  x509: z.strictObject({ clientCAFile: text.optional() }).optional(),
  webhook: z.strictObject({ enabled: flag.optional(), cacheTTL: duration.optional() }).optional(),
  anonymous: z.strictObject({ enabled: flag.optional() }).optional(),
});

const authorization = z.strictObject({
  mode: text.optional(),
  webhook: z
    .strictObject({ cacheAuthorizedTTL: duration.optional(), cacheUnauthorizedTTL: duration.optional() })
    .optional(),
});

const outputRouting = z.strictObject({
  splitStream: flag.optional(),
  infoBufferSize: z.union([text, z.number()]).optional(),
});

const logging = z.strictObject({
  format: text.optional(),
  /** A duration, or nanoseconds; invalid text is reported by validate-ignored.ts. */
  flushFrequency: z
    .union([text, z.number()])
    .refine((value) => value !== "", { error: ({ input }) => durationProblem(input) })
    .optional(),
  verbosity: Int32.optional(),
  vmodule: z.array(z.strictObject({ filePattern: text, verbosity: Int32 })).optional(),
  options: z.strictObject({ text: outputRouting.optional(), json: outputRouting.optional() }).optional(),
});

const taint = z.strictObject({
  key: text,
  value: text.optional(),
  effect: text,
  timeAdded: text.optional(),
});

export const kubeletConfigurationSchema = z.strictObject({
  enableServer: flag.optional(),
  staticPodPath: text.optional(),
  podLogsDir: text.optional(),
  syncFrequency: duration.optional(),
  fileCheckFrequency: duration.optional(),
  httpCheckFrequency: duration.optional(),
  staticPodURL: text.optional(),
  staticPodURLHeader: z.record(text, texts).optional(),
  address: text.optional(),
  port: Int32.optional(),
  readOnlyPort: Int32.optional(),
  tlsCertFile: text.optional(),
  tlsPrivateKeyFile: text.optional(),
  tlsCipherSuites: texts.optional(),
  tlsCurvePreferences: z.array(Int32).optional(),
  tlsMinVersion: text.optional(),
  rotateCertificates: flag.optional(),
  serverTLSBootstrap: flag.optional(),
  authentication: authentication.optional(),
  authorization: authorization.optional(),
  registryPullQPS: Int32.optional(),
  registryBurst: Int32.optional(),
  imagePullCredentialsVerificationPolicy: text.optional(),
  preloadedImagesVerificationAllowlist: texts.optional(),
  eventRecordQPS: Int32.optional(),
  eventBurst: Int32.optional(),
  enableDebuggingHandlers: flag.optional(),
  enableContentionProfiling: flag.optional(),
  healthzPort: Int32.optional(),
  healthzBindAddress: text.optional(),
  oomScoreAdj: Int32.optional(),
  clusterDomain: text.optional(),
  clusterDNS: texts.optional(),
  streamingConnectionIdleTimeout: duration.optional(),
  nodeStatusUpdateFrequency: duration.optional(),
  nodeStatusReportFrequency: duration.optional(),
  nodeLeaseDurationSeconds: Int32.optional(),
  imageMinimumGCAge: duration.optional(),
  imageMaximumGCAge: duration.optional(),
  imageGCHighThresholdPercent: Int32.optional(),
  imageGCLowThresholdPercent: Int32.optional(),
  volumeStatsAggPeriod: duration.optional(),
  kubeletCgroups: text.optional(),
  systemCgroups: text.optional(),
  cgroupRoot: text.optional(),
  cgroupsPerQOS: flag.optional(),
  cgroupDriver: text.optional(),
  cpuManagerPolicy: text.optional(),
  singleProcessOOMKill: flag.optional(),
  cpuManagerPolicyOptions: textMap.optional(),
  cpuManagerReconcilePeriod: duration.optional(),
  memoryManagerPolicy: text.optional(),
  topologyManagerPolicy: text.optional(),
  topologyManagerScope: text.optional(),
  topologyManagerPolicyOptions: textMap.optional(),
  qosReserved: textMap.optional(),
  runtimeRequestTimeout: duration.optional(),
  hairpinMode: text.optional(),
  maxPods: Int32.optional(),
  podCIDR: text.optional(),
  podPidsLimit: z.int().optional(),
  resolvConf: text.optional(),
  runOnce: flag.optional(),
  cpuCFSQuota: flag.optional(),
  cpuCFSQuotaPeriod: duration.optional(),
  nodeStatusMaxImages: Int32.optional(),
  maxOpenFiles: z.int().optional(),
  contentType: text.optional(),
  kubeAPIQPS: Int32.optional(),
  kubeAPIBurst: Int32.optional(),
  serializeImagePulls: flag.optional(),
  maxParallelImagePulls: Int32.optional(),
  evictionHard: textMap.optional(),
  evictionSoft: textMap.optional(),
  evictionSoftGracePeriod: textMap.optional(),
  evictionPressureTransitionPeriod: duration.optional(),
  evictionMaxPodGracePeriod: Int32.optional(),
  evictionMinimumReclaim: textMap.optional(),
  mergeDefaultEvictionSettings: flag.optional(),
  podsPerCore: Int32.optional(),
  enableControllerAttachDetach: flag.optional(),
  protectKernelDefaults: flag.optional(),
  makeIPTablesUtilChains: flag.optional(),
  iptablesMasqueradeBit: Int32.optional(),
  iptablesDropBit: Int32.optional(),
  featureGates: z.record(text, flag).optional(),
  failSwapOn: flag.optional(),
  memorySwap: z.strictObject({ swapBehavior: text.optional() }).optional(),
  containerLogMaxSize: text.optional(),
  containerLogMaxFiles: Int32.optional(),
  containerLogMaxWorkers: Int32.optional(),
  containerLogMonitorInterval: duration.optional(),
  configMapAndSecretChangeDetectionStrategy: text.optional(),
  systemReserved: textMap.optional(),
  kubeReserved: textMap.optional(),
  reservedSystemCPUs: text.optional(),
  showHiddenMetricsForVersion: text.optional(),
  systemReservedCgroup: text.optional(),
  kubeReservedCgroup: text.optional(),
  enforceNodeAllocatable: texts.optional(),
  allowedUnsafeSysctls: texts.optional(),
  volumePluginDir: text.optional(),
  providerID: text.optional(),
  kernelMemcgNotification: flag.optional(),
  logging: logging.optional(),
  enableSystemLogHandler: flag.optional(),
  enableSystemLogQuery: flag.optional(),
  shutdownGracePeriod: duration.optional(),
  shutdownGracePeriodCriticalPods: duration.optional(),
  shutdownGracePeriodByPodPriority: z
    .array(z.strictObject({ priority: Int32, shutdownGracePeriodSeconds: z.int() }))
    .optional(),
  crashLoopBackOff: z.strictObject({ maxContainerRestartPeriod: duration.optional() }).optional(),
  reservedMemory: z.array(z.strictObject({ numaNode: Int32, limits: quantities })).optional(),
  enableProfilingHandler: flag.optional(),
  enableDebugFlagsHandler: flag.optional(),
  seccompDefault: flag.optional(),
  memoryThrottlingFactor: z.number().optional(),
  memoryReservationPolicy: text.optional(),
  registerWithTaints: z.array(taint).optional(),
  registerNode: flag.optional(),
  tracing: z.strictObject({ endpoint: text.optional(), samplingRatePerMillion: Int32.optional() }).optional(),
  localStorageCapacityIsolation: flag.optional(),
  containerRuntimeEndpoint: text.optional(),
  imageServiceEndpoint: text.optional(),
  failCgroupV1: flag.optional(),
  userNamespaces: z.strictObject({ idsPerPod: z.int().optional() }).optional(),
});

/** Any part of a configuration: a file, a drop-in or the command line. */
export type PartialConfiguration = z.infer<typeof kubeletConfigurationSchema>;
