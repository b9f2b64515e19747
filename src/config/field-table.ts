/** How podwright treats a field of KubeletConfiguration. */
export type FieldSupport =
  /** `how`: what differs from, or adds to, upstream's documentation of the field. */
  | { readonly kind: "honoured"; readonly how?: string }
  /** Completes "not honoured: podwright …". No warning for a value of `unless`, which is podwright's own behaviour. */
  | { readonly kind: "ignored"; readonly because: string; readonly unless?: readonly unknown[] };

const honoured: FieldSupport = { kind: "honoured" };

function as(how: string): FieldSupport {
  return { kind: "honoured", how };
}

function ignored(because: string, ...unless: readonly unknown[]): FieldSupport {
  return { kind: "ignored", because, unless };
}

const noProfiles = "is not a Go program and has no pprof profiles or klog levels";
const noEffectUpstream = "has no use for it, like the kubelet of 1.36";
const noTopology = "does not align resources with the machine's topology yet";
const noCpuManager = "does not assign exclusive CPUs to containers yet";

/**
 * Every field of KubeletConfiguration, or its parts where they differ. docs/configuration.md shows this table; no set
 * field is silently ignored.
 */
export const fieldTable: Readonly<Record<string, FieldSupport>> = {
  enableServer: honoured,
  staticPodPath: honoured,
  podLogsDir: honoured,
  syncFrequency: honoured,
  fileCheckFrequency: as("changes are seen immediately through inotify; this is the additional poll"),
  httpCheckFrequency: honoured,
  staticPodURL: honoured,
  staticPodURLHeader: as("the values are never logged"),
  address: honoured,
  port: honoured,
  readOnlyPort: honoured,
  tlsCertFile: honoured,
  tlsPrivateKeyFile: honoured,
  tlsCipherSuites: as("TLS 1.3 suites are always enabled; the default suites are Go's"),
  tlsCurvePreferences: as("key exchanges by Go's numbers: 23, 24, 25, 29, 4587, 4588, 4589; the default is OpenSSL's"),
  tlsMinVersion: as("TLS 1.0 and 1.1 are not supported: podwright uses 1.2 instead"),
  rotateCertificates: as("open connections stay, new ones use the new certificate"),
  serverTLSBootstrap: as("podwright waits for a pending request and sends no second one"),
  authentication: as("client certificates, `--token-auth-file`, token reviews at the API server, the anonymous user"),
  authorization: as(
    "with Webhook and no cluster the API is not served; AlwaysAllow restricts the anonymous user to health and metrics, unless both are set explicitly",
  ),
  registryPullQPS: honoured,
  registryBurst: honoured,
  imagePullCredentialsVerificationPolicy: honoured,
  preloadedImagesVerificationAllowlist: honoured,
  eventRecordQPS: as("0 means 5, as for the Go kubelet"),
  eventBurst: as("`--event-burst 0` means 10, as for the Go kubelet"),
  enableDebuggingHandlers: honoured,
  enableContentionProfiling: ignored(noProfiles, false),
  healthzPort: honoured,
  healthzBindAddress: honoured,
  oomScoreAdj: as("if the kernel does not permit it, one log line says so"),
  clusterDomain: honoured,
  clusterDNS: honoured,
  streamingConnectionIdleTimeout: as("streams idle for this long are closed; negative: never"),
  nodeStatusUpdateFrequency: honoured,
  nodeStatusReportFrequency: honoured,
  nodeLeaseDurationSeconds: honoured,
  imageMinimumGCAge: honoured,
  imageMaximumGCAge: as("an image that was never in use ages from when it was first seen"),
  imageGCHighThresholdPercent: honoured,
  imageGCLowThresholdPercent: as("a collection ends at or below it"),
  volumeStatsAggPeriod: as(
    "volumes of claims are measured once every one to two periods, others on demand and at most once a period; negative: never",
  ),
  kubeletCgroups: as("the kubelet is moved there, and its usage is reported as the kubelet's"),
  systemCgroups: as("every process of the root cgroup but kernel threads and process 1 is moved there, each minute"),
  cgroupRoot: as("`/` when empty; created when missing, which the Go kubelet refuses"),
  cgroupsPerQOS: as("false: pods have no cgroups of their own, and their limits as a whole are not enforced"),
  cgroupDriver: as("the runtime's RuntimeConfig takes precedence"),
  cpuManagerPolicy: ignored(noCpuManager, "none"),
  singleProcessOOMKill: honoured,
  cpuManagerPolicyOptions: ignored(noCpuManager),
  cpuManagerReconcilePeriod: ignored(noCpuManager),
  memoryManagerPolicy: ignored(noTopology, "None"),
  topologyManagerPolicy: ignored(noTopology, "none"),
  topologyManagerScope: ignored(noTopology),
  topologyManagerPolicyOptions: ignored(noTopology),
  qosReserved: as("memory only, under the feature gate QOSReserved; a class that uses more is not killed for it"),
  runtimeRequestTimeout: honoured,
  hairpinMode: ignored(noEffectUpstream),
  maxPods: honoured,
  podCIDR: as("sent to the runtime of a node without a cluster; in a cluster the Node's podCIDR is used"),
  podPidsLimit: as("capped at the kernel's limit, 4194304"),
  resolvConf: honoured,
  runOnce: as("true is an error, as in the kubelet of 1.36"),
  cpuCFSQuota: honoured,
  cpuCFSQuotaPeriod: honoured,
  nodeStatusMaxImages: honoured,
  maxOpenFiles: as("Node.js uses the process's limit; a lower limit than this is logged once"),
  contentType: ignored("speaks JSON to the API server", "application/json", "application/vnd.kubernetes.protobuf"),
  kubeAPIQPS: as("pod statuses have priority; heartbeats and events are not limited; 0 means 5, as for the Go kubelet"),
  kubeAPIBurst: as("`--kube-api-burst 0` means 10, as for the Go kubelet"),
  serializeImagePulls: honoured,
  maxParallelImagePulls: honoured,
  evictionHard: as("what it keeps free is not allocatable"),
  evictionSoft: honoured,
  evictionSoftGracePeriod: honoured,
  evictionPressureTransitionPeriod: honoured,
  evictionMaxPodGracePeriod: honoured,
  evictionMinimumReclaim: honoured,
  mergeDefaultEvictionSettings: honoured,
  podsPerCore: honoured,
  enableControllerAttachDetach: as(
    "sets the Node's annotation for the attach-detach controller; false: volumes that must be attached are an error",
  ),
  protectKernelDefaults: as(
    "false: kernel settings that differ from the kubelet's are changed; never by `podwright run`",
  ),
  makeIPTablesUtilChains: as("by the machine's own `iptables` and `ip6tables`; `podwright run` creates none"),
  iptablesMasqueradeBit: ignored(noEffectUpstream),
  iptablesDropBit: ignored(noEffectUpstream),
  featureGates: as(
    "unknown and locked gates, and gates with disabled dependencies, are errors; gates without effect cause a warning",
  ),
  failSwapOn: honoured,
  memorySwap: as("LimitedSwap on cgroup v2 only, as upstream"),
  containerLogMaxSize: as("negative: no rotation"),
  containerLogMaxFiles: honoured,
  containerLogMaxWorkers: as("the number of rotated files compressed at a time; renaming is not limited"),
  containerLogMonitorInterval: honoured,
  configMapAndSecretChangeDetectionStrategy: ignored(
    "watches the objects that its pods refer to; list and watch must be permitted",
    "Watch",
  ),
  systemReserved: honoured,
  kubeReserved: honoured,
  reservedSystemCPUs: as("the number of these CPUs is reserved; which ones matters only to the static CPU manager"),
  showHiddenMetricsForVersion: ignored("has no hidden metrics"),
  systemReservedCgroup: as("must exist, with all controllers: podwright does not start otherwise"),
  kubeReservedCgroup: as("must exist, with all controllers: podwright does not start otherwise"),
  enforceNodeAllocatable: as("a memory limit below what its cgroup uses is logged before it is set"),
  allowedUnsafeSysctls: honoured,
  volumePluginDir: ignored("runs no Flexvolume drivers"),
  providerID: honoured,
  kernelMemcgNotification: as("memory is checked every second on cgroup v1; no effect on v2, as upstream"),
  "logging.format": ignored("writes one JSON object per line, and readable lines on a terminal", "json"),
  "logging.flushFrequency": ignored("writes each line immediately", "5s", 5_000_000_000),
  "logging.verbosity": as("4 and above adds debug lines"),
  "logging.vmodule": ignored("has one verbosity for all its code, and no Go files for patterns to match"),
  "logging.options": ignored("writes all logs to standard error, each line immediately"),
  enableSystemLogHandler: honoured,
  enableSystemLogQuery: honoured,
  shutdownGracePeriod: as(
    "needs systemd-logind, and `systemd-inhibit` on Node.js older than 26.1; without them a log line says so once",
  ),
  shutdownGracePeriodCriticalPods: honoured,
  shutdownGracePeriodByPodPriority: honoured,
  crashLoopBackOff: honoured,
  reservedMemory: ignored(noTopology),
  enableProfilingHandler: as("profiles are always refused: podwright is not a Go program"),
  enableDebugFlagsHandler: honoured,
  seccompDefault: honoured,
  memoryThrottlingFactor: as("under the feature gate MemoryQoS, on cgroup v2"),
  memoryReservationPolicy: as("under the feature gate MemoryQoS, on cgroup v2; resizes follow"),
  registerWithTaints: as("each needs an effect; duplicates of key and effect are an error"),
  registerNode: honoured,
  tracing: ignored("exports no traces yet"),
  localStorageCapacityIsolation: as(
    "requests are accounted for; pods over their limits are evicted; quotas measure volumes under the feature gate LocalStorageCapacityIsolationFSQuotaMonitoring",
  ),
  containerRuntimeEndpoint: as("a Unix socket; podwright waits until the runtime answers"),
  imageServiceEndpoint: honoured,
  failCgroupV1: honoured,
  userNamespaces: honoured,
};
