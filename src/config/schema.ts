import { z } from "zod";
import { parseGoDuration } from "./go-duration.ts";

/**
 * KubeletConfiguration (kubelet.config.k8s.io/v1beta1) of Kubernetes 1.36 as it is written, without apiVersion and kind:
 * types only, every field optional. What values mean and which are allowed is said elsewhere (defaults.ts, validate.ts).
 */

const text = z.string();
const flag = z.boolean();
const mostInt32 = 2 ** 31 - 1;
/** Of 32 bits. */
const whole = z.int().refine((value) => value >= -mostInt32 - 1 && value <= mostInt32, {
  error: `the number does not fit int32: ${-mostInt32 - 1} to ${mostInt32}`,
});
/** Of 64 bits; beyond what a number says exactly, the nearest that it can. */
const long = z.number().refine((value) => Number.isInteger(value) && Math.abs(value) <= 2 ** 63, {
  error: "expected a whole number of 64 bits",
});
const texts = z.array(text);
const textMap = z.record(text, text);
const isDuration = (value: string): boolean => parseGoDuration(value) !== undefined;
const noDuration = { error: 'expected a duration such as "10s" or "1h30m"' };
const duration = text.refine(isDuration, noDuration);
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
  /** A duration, or nanoseconds; which text is none is told by validate-ignored.ts. */
  flushFrequency: z
    .union([text, z.number()])
    .refine((value) => value !== "", noDuration)
    .optional(),
  verbosity: whole.optional(),
  vmodule: z.array(z.strictObject({ filePattern: text, verbosity: whole })).optional(),
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
  port: whole.optional(),
  readOnlyPort: whole.optional(),
  tlsCertFile: text.optional(),
  tlsPrivateKeyFile: text.optional(),
  tlsCipherSuites: texts.optional(),
  tlsCurvePreferences: z.array(whole).optional(),
  tlsMinVersion: text.optional(),
  rotateCertificates: flag.optional(),
  serverTLSBootstrap: flag.optional(),
  authentication: authentication.optional(),
  authorization: authorization.optional(),
  registryPullQPS: whole.optional(),
  registryBurst: whole.optional(),
  imagePullCredentialsVerificationPolicy: text.optional(),
  preloadedImagesVerificationAllowlist: texts.optional(),
  eventRecordQPS: whole.optional(),
  eventBurst: whole.optional(),
  enableDebuggingHandlers: flag.optional(),
  enableContentionProfiling: flag.optional(),
  healthzPort: whole.optional(),
  healthzBindAddress: text.optional(),
  oomScoreAdj: whole.optional(),
  clusterDomain: text.optional(),
  clusterDNS: texts.optional(),
  streamingConnectionIdleTimeout: duration.optional(),
  nodeStatusUpdateFrequency: duration.optional(),
  nodeStatusReportFrequency: duration.optional(),
  nodeLeaseDurationSeconds: whole.optional(),
  imageMinimumGCAge: duration.optional(),
  imageMaximumGCAge: duration.optional(),
  imageGCHighThresholdPercent: whole.optional(),
  imageGCLowThresholdPercent: whole.optional(),
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
  maxPods: whole.optional(),
  podCIDR: text.optional(),
  podPidsLimit: long.optional(),
  resolvConf: text.optional(),
  runOnce: flag.optional(),
  cpuCFSQuota: flag.optional(),
  cpuCFSQuotaPeriod: duration.optional(),
  nodeStatusMaxImages: whole.optional(),
  maxOpenFiles: long.optional(),
  contentType: text.optional(),
  kubeAPIQPS: whole.optional(),
  kubeAPIBurst: whole.optional(),
  serializeImagePulls: flag.optional(),
  maxParallelImagePulls: whole.optional(),
  evictionHard: textMap.optional(),
  evictionSoft: textMap.optional(),
  evictionSoftGracePeriod: textMap.optional(),
  evictionPressureTransitionPeriod: duration.optional(),
  evictionMaxPodGracePeriod: whole.optional(),
  evictionMinimumReclaim: textMap.optional(),
  mergeDefaultEvictionSettings: flag.optional(),
  podsPerCore: whole.optional(),
  enableControllerAttachDetach: flag.optional(),
  protectKernelDefaults: flag.optional(),
  makeIPTablesUtilChains: flag.optional(),
  iptablesMasqueradeBit: whole.optional(),
  iptablesDropBit: whole.optional(),
  featureGates: z.record(text, flag).optional(),
  failSwapOn: flag.optional(),
  memorySwap: z.strictObject({ swapBehavior: text.optional() }).optional(),
  containerLogMaxSize: text.optional(),
  containerLogMaxFiles: whole.optional(),
  containerLogMaxWorkers: whole.optional(),
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
    .array(z.strictObject({ priority: whole, shutdownGracePeriodSeconds: long }))
    .optional(),
  crashLoopBackOff: z.strictObject({ maxContainerRestartPeriod: duration.optional() }).optional(),
  reservedMemory: z.array(z.strictObject({ numaNode: whole, limits: quantities })).optional(),
  enableProfilingHandler: flag.optional(),
  enableDebugFlagsHandler: flag.optional(),
  seccompDefault: flag.optional(),
  memoryThrottlingFactor: z.number().optional(),
  memoryReservationPolicy: text.optional(),
  registerWithTaints: z.array(taint).optional(),
  registerNode: flag.optional(),
  tracing: z.strictObject({ endpoint: text.optional(), samplingRatePerMillion: whole.optional() }).optional(),
  localStorageCapacityIsolation: flag.optional(),
  containerRuntimeEndpoint: text.optional(),
  imageServiceEndpoint: text.optional(),
  failCgroupV1: flag.optional(),
  userNamespaces: z.strictObject({ idsPerPod: long.optional() }).optional(),
});

/** What a file, a drop-in or the command line says: any part of a configuration. */
export type PartialConfiguration = z.infer<typeof kubeletConfigurationSchema>;
