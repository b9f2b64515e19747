/** What this version of podwright makes of a field of KubeletConfiguration. */
export type FieldSupport =
  /** `how` where it is not simply what the field's own documentation says. */
  | { readonly kind: "honoured"; readonly how?: string }
  /** Set to anything but what podwright does anyway (`unless`), it is warned of. Completes "not honoured: podwright …". */
  | { readonly kind: "ignored"; readonly because: string; readonly unless?: readonly unknown[] }
  /** Set to anything but `unless`, podwright does not start. Completes "not supported: podwright …". */
  | { readonly kind: "refused"; readonly because: string; readonly unless: readonly unknown[] };

const honoured: FieldSupport = { kind: "honoured" };

function as(how: string): FieldSupport {
  return { kind: "honoured", how };
}

function ignored(because: string, ...unless: readonly unknown[]): FieldSupport {
  return { kind: "ignored", because, unless };
}

function refused(because: string, ...unless: readonly unknown[]): FieldSupport {
  return { kind: "refused", because, unless };
}

const noProfiles = "is no Go program and has none of its profiles and log levels";
const noImageGc = "does not remove unused images yet";
const noEviction = "does not evict pods yet";
const onlyPressure = "makes the node's pressure conditions and keeps new pods away; no pod that runs is evicted yet";
const noReservedCgroups = "holds pods to what is left, but no cgroup of the system to what is reserved for it";
const noShutdown = "does not watch for a shutdown of the node yet";
const noEffectUpstream = "knows, as the kubelet of 1.36, no use for it";
const noMemoryQos = "does not set memory.min, low and high yet";
const noTopology = "does not align resources with the machine's topology yet";
const noCpuManager = "gives containers no processors of their own yet";

/**
 * Every field of KubeletConfiguration, a structure by its parts where they differ: docs/configuration.md shows this
 * table, and nothing that is set is ignored in silence.
 */
export const fieldTable: Readonly<Record<string, FieldSupport>> = {
  enableServer: honoured,
  staticPodPath: honoured,
  podLogsDir: honoured,
  syncFrequency: honoured,
  fileCheckFrequency: as("changes are seen at once through inotify; this is the look besides"),
  httpCheckFrequency: honoured,
  staticPodURL: honoured,
  staticPodURLHeader: as("the values never reach logs"),
  address: honoured,
  port: honoured,
  readOnlyPort: honoured,
  tlsCertFile: honoured,
  tlsPrivateKeyFile: honoured,
  tlsCipherSuites: as("suites of TLS 1.3 are always on, and without any those of Go are taken"),
  tlsCurvePreferences: as(
    "key exchanges by Go's numbers: 23, 24, 25, 29, 4587, 4588, 4589; without any OpenSSL chooses",
  ),
  tlsMinVersion: as("TLS 1.0 and 1.1 are never spoken: asked for them, podwright takes 1.2"),
  rotateCertificates: as("connections under way end by themselves, new ones are made with the new certificate"),
  serverTLSBootstrap: as("a request that nobody decides is waited for, no other one is made beside it"),
  authentication: as("client certificates, `--token-auth-file`, tokens asked of the API server, the anonymous user"),
  authorization: as(
    "with Webhook and without a cluster the API is not served; AlwaysAllow lets the anonymous user ask for health and metrics only, unless both are written",
  ),
  registryPullQPS: honoured,
  registryBurst: honoured,
  imagePullCredentialsVerificationPolicy: honoured,
  preloadedImagesVerificationAllowlist: honoured,
  eventRecordQPS: honoured,
  eventBurst: honoured,
  enableDebuggingHandlers: honoured,
  enableContentionProfiling: ignored(noProfiles, false),
  healthzPort: honoured,
  healthzBindAddress: honoured,
  oomScoreAdj: as("where the kernel does not permit it, that is said once"),
  clusterDomain: honoured,
  clusterDNS: honoured,
  streamingConnectionIdleTimeout: as("a stream on which nothing passes for so long is ended; negative: never"),
  nodeStatusUpdateFrequency: honoured,
  nodeStatusReportFrequency: honoured,
  nodeLeaseDurationSeconds: honoured,
  imageMinimumGCAge: ignored(noImageGc),
  imageMaximumGCAge: ignored(noImageGc),
  imageGCHighThresholdPercent: ignored(noImageGc, 100),
  imageGCLowThresholdPercent: ignored(noImageGc),
  volumeStatsAggPeriod: as("volumes are measured this often at most, and only while somebody asks; negative: never"),
  kubeletCgroups: as("where its own use is counted; it stays in the cgroup it is started in"),
  systemCgroups: as("where the system's use is counted; no processes are moved there"),
  cgroupRoot: as("`/` when empty; made when it is missing, which the Go kubelet refuses"),
  cgroupsPerQOS: refused("can't do without the cgroups of QoS classes and pods yet", true),
  cgroupDriver: as("what the runtime says (RuntimeConfig) comes first"),
  cpuManagerPolicy: ignored(noCpuManager, "none"),
  singleProcessOOMKill: honoured,
  cpuManagerPolicyOptions: ignored(noCpuManager),
  cpuManagerReconcilePeriod: ignored(noCpuManager),
  memoryManagerPolicy: ignored(noTopology, "None"),
  topologyManagerPolicy: ignored(noTopology, "none"),
  topologyManagerScope: ignored(noTopology),
  topologyManagerPolicyOptions: ignored(noTopology),
  qosReserved: ignored("reserves no memory for classes of pods; the feature gate is alpha"),
  runtimeRequestTimeout: honoured,
  hairpinMode: ignored(noEffectUpstream),
  maxPods: honoured,
  podCIDR: as("the runtime of a node without a cluster is told it; in a cluster the Node's counts"),
  podPidsLimit: as("more than the kernel allows, 4194304, is as much as it allows"),
  resolvConf: honoured,
  runOnce: as("true is an error, as to the kubelet of 1.36"),
  cpuCFSQuota: honoured,
  cpuCFSQuotaPeriod: honoured,
  nodeStatusMaxImages: honoured,
  maxOpenFiles: as("Node.js takes what the process may have; less than this is said once"),
  contentType: ignored("speaks JSON to the API server", "application/json", "application/vnd.kubernetes.protobuf"),
  kubeAPIQPS: as("statuses go first; heartbeats and events don't count"),
  kubeAPIBurst: honoured,
  serializeImagePulls: honoured,
  maxParallelImagePulls: honoured,
  evictionHard: as(`${onlyPressure}; what it keeps free is not allocatable`),
  evictionSoft: as(onlyPressure),
  evictionSoftGracePeriod: as(onlyPressure),
  evictionPressureTransitionPeriod: honoured,
  evictionMaxPodGracePeriod: ignored(noEviction),
  evictionMinimumReclaim: as(onlyPressure),
  mergeDefaultEvictionSettings: honoured,
  podsPerCore: honoured,
  enableControllerAttachDetach: as(
    "as the annotation of the Node that says who attaches volumes; podwright attaches none yet",
  ),
  protectKernelDefaults: ignored("neither checks nor changes kernel settings", false),
  makeIPTablesUtilChains: ignored("makes no iptables chains", false),
  iptablesMasqueradeBit: ignored(noEffectUpstream),
  iptablesDropBit: ignored(noEffectUpstream),
  featureGates: as(
    "unknown and locked gates, and gates without those they depend on, are errors; gates without effect here are warned of",
  ),
  failSwapOn: honoured,
  memorySwap: as("LimitedSwap on cgroup v2 only, as upstream"),
  containerLogMaxSize: as("negative: no rotation"),
  containerLogMaxFiles: honoured,
  containerLogMaxWorkers: as("how many rotated files are packed at a time; renaming waits for nobody"),
  containerLogMonitorInterval: honoured,
  configMapAndSecretChangeDetectionStrategy: ignored(
    "watches what its pods refer to: a change is seen as early as with Get, and by fewer requests; list and watch have to be permitted",
    "Watch",
  ),
  systemReserved: honoured,
  kubeReserved: honoured,
  reservedSystemCPUs: as(
    "so many processors of this machine are reserved; which ones matters to the static CPU manager alone",
  ),
  showHiddenMetricsForVersion: ignored("has no hidden metrics"),
  systemReservedCgroup: ignored(noReservedCgroups),
  kubeReservedCgroup: ignored(noReservedCgroups),
  enforceNodeAllocatable: ignored(noReservedCgroups, ["pods"], ["none"], []),
  allowedUnsafeSysctls: honoured,
  volumePluginDir: ignored("runs no Flexvolume drivers"),
  providerID: honoured,
  kernelMemcgNotification: ignored(noEviction, false),
  "logging.format": ignored("writes one JSON object a line, and lines for people on a terminal", "json"),
  "logging.flushFrequency": ignored("writes each line at once", "5s", 5_000_000_000),
  "logging.verbosity": as("4 and above adds debug lines"),
  "logging.vmodule": ignored("has one verbosity for all, and none of the Go files that the patterns name"),
  "logging.options": ignored(
    "writes all its logs to standard error, each line at once: there is nothing to split or to buffer",
  ),
  enableSystemLogHandler: honoured,
  enableSystemLogQuery: honoured,
  shutdownGracePeriod: ignored(noShutdown),
  shutdownGracePeriodCriticalPods: ignored(noShutdown),
  shutdownGracePeriodByPodPriority: ignored(noShutdown),
  crashLoopBackOff: honoured,
  reservedMemory: ignored(noTopology),
  enableProfilingHandler: as("profiles are refused either way: podwright is no Go program and has none"),
  enableDebugFlagsHandler: honoured,
  seccompDefault: honoured,
  memoryThrottlingFactor: ignored(noMemoryQos),
  memoryReservationPolicy: ignored(noMemoryQos, "None"),
  registerWithTaints: as("each needs an effect; two of one key and effect are an error"),
  registerNode: honoured,
  tracing: ignored("exports no traces yet"),
  localStorageCapacityIsolation: as("requests are counted; no pod is evicted for passing its limit yet"),
  containerRuntimeEndpoint: as("a Unix socket; while nobody answers there, podwright waits"),
  imageServiceEndpoint: honoured,
  failCgroupV1: honoured,
  userNamespaces: honoured,
};
