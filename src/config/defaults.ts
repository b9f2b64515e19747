import { featureGates, type FeatureGates } from "./feature-gates.ts";
import { parseGoDuration } from "../base/go-duration.ts";
import type { PartialConfiguration } from "./schema.ts";

/** Hard eviction thresholds of a `--config` file without any. */
export const defaultEvictionHard: Readonly<Record<string, string>> = {
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
};

/** KubeletConfiguration with upstream's defaults for unset fields. */
export type KubeletConfiguration = ReturnType<typeof defaulted>;

/**
 * Sets defaults (pkg/kubelet/apis/config/v1beta1/defaults.go of Kubernetes 1.36). An empty text, a zero or a zero
 * duration means the default where upstream cannot distinguish it from a missing field. Pure.
 * @param flagGates the command line's feature gates, which take precedence over the file's: two defaults depend on
 * gates
 */
export function withDefaults(
  given: PartialConfiguration,
  flagGates: Readonly<Record<string, boolean>> = {},
): KubeletConfiguration {
  return defaulted(given, featureGates({ ...given.featureGates, ...flagGates }));
}

/** For fields whose zero value means unset. */
const isUnset = (value: unknown): boolean => {
  return (
    value === undefined || value === "" || value === 0 || (typeof value === "string" && parseGoDuration(value) === 0)
  );
};

function unlessZero<T extends string | number>(value: T | undefined, fallback: T): T {
  return value === undefined || isUnset(value) ? fallback : value;
}

function defaulted(given: PartialConfiguration, gates: FeatureGates) {
  return {
    ...given,
    enableServer: given.enableServer ?? true,
    podLogsDir: given.podLogsDir || "/var/log/pods",
    ...frequencies(given),
    address: given.address || "0.0.0.0",
    port: unlessZero(given.port, 10250),
    ...access(given),
    registryPullQPS: given.registryPullQPS ?? 5,
    registryBurst: unlessZero(given.registryBurst, 10),
    imagePullCredentialsVerificationPolicy: verificationPolicy(given, gates),
    eventRecordQPS: given.eventRecordQPS ?? 50,
    eventBurst: unlessZero(given.eventBurst, 100),
    enableDebuggingHandlers: given.enableDebuggingHandlers ?? true,
    healthzPort: given.healthzPort ?? 10248,
    healthzBindAddress: given.healthzBindAddress || "127.0.0.1",
    oomScoreAdj: given.oomScoreAdj ?? -999,
    nodeLeaseDurationSeconds: unlessZero(given.nodeLeaseDurationSeconds, 40),
    imageGCHighThresholdPercent: given.imageGCHighThresholdPercent ?? 85,
    imageGCLowThresholdPercent: given.imageGCLowThresholdPercent ?? 80,
    cgroupsPerQOS: given.cgroupsPerQOS ?? true,
    cgroupDriver: given.cgroupDriver || "cgroupfs",
    cpuManagerPolicy: given.cpuManagerPolicy || "none",
    memoryManagerPolicy: given.memoryManagerPolicy || "None",
    topologyManagerPolicy: given.topologyManagerPolicy || "none",
    topologyManagerScope: given.topologyManagerScope || "container",
    hairpinMode: given.hairpinMode || "promiscuous-bridge",
    maxPods: unlessZero(given.maxPods, 110),
    podPidsLimit: given.podPidsLimit === undefined || given.podPidsLimit < 0 ? -1 : given.podPidsLimit,
    resolvConf: given.resolvConf ?? "/etc/resolv.conf",
    cpuCFSQuota: given.cpuCFSQuota ?? true,
    nodeStatusMaxImages: given.nodeStatusMaxImages ?? 50,
    maxOpenFiles: unlessZero(given.maxOpenFiles, 1_000_000),
    contentType: given.contentType || "application/vnd.kubernetes.protobuf",
    kubeAPIQPS: given.kubeAPIQPS ?? 50,
    kubeAPIBurst: unlessZero(given.kubeAPIBurst, 100),
    // Parallel pulls imply that pulls are not serialized.
    serializeImagePulls: given.serializeImagePulls ?? (given.maxParallelImagePulls ?? 0) < 2,
    mergeDefaultEvictionSettings: given.mergeDefaultEvictionSettings ?? false,
    enableControllerAttachDetach: given.enableControllerAttachDetach ?? true,
    makeIPTablesUtilChains: given.makeIPTablesUtilChains ?? true,
    iptablesMasqueradeBit: given.iptablesMasqueradeBit ?? 14,
    iptablesDropBit: given.iptablesDropBit ?? 15,
    failSwapOn: given.failSwapOn ?? true,
    containerLogMaxSize: given.containerLogMaxSize || "10Mi",
    containerLogMaxFiles: given.containerLogMaxFiles ?? 5,
    containerLogMaxWorkers: given.containerLogMaxWorkers ?? 1,
    configMapAndSecretChangeDetectionStrategy: given.configMapAndSecretChangeDetectionStrategy || "Watch",
    enforceNodeAllocatable: given.enforceNodeAllocatable ?? ["pods"],
    volumePluginDir: given.volumePluginDir || "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
    logging: {
      ...given.logging,
      format: given.logging?.format || "text",
      flushFrequency: unlessZero(given.logging?.flushFrequency, "5s"),
      verbosity: given.logging?.verbosity ?? 0,
    },
    enableSystemLogHandler: given.enableSystemLogHandler ?? true,
    enableProfilingHandler: given.enableProfilingHandler ?? true,
    enableDebugFlagsHandler: given.enableDebugFlagsHandler ?? true,
    seccompDefault: given.seccompDefault ?? false,
    memoryThrottlingFactor: given.memoryThrottlingFactor ?? 0.9,
    memoryReservationPolicy: given.memoryReservationPolicy || "None",
    registerNode: given.registerNode ?? true,
    localStorageCapacityIsolation: given.localStorageCapacityIsolation ?? true,
    containerRuntimeEndpoint: given.containerRuntimeEndpoint || "unix:///run/containerd/containerd.sock",
    failCgroupV1: given.failCgroupV1 ?? true,
    crashLoopBackOff: crashLoopBackOff(given, gates),
  };
}

/** Durations whose default is zero. */
function frequencies(given: PartialConfiguration) {
  return {
    syncFrequency: unlessZero(given.syncFrequency, "1m0s"),
    fileCheckFrequency: unlessZero(given.fileCheckFrequency, "20s"),
    httpCheckFrequency: unlessZero(given.httpCheckFrequency, "20s"),
    streamingConnectionIdleTimeout: unlessZero(given.streamingConnectionIdleTimeout, "4h0m0s"),
    nodeStatusUpdateFrequency: unlessZero(given.nodeStatusUpdateFrequency, "10s"),
    // Defaults to the other period: older releases had only one field.
    nodeStatusReportFrequency: unlessZero(
      given.nodeStatusReportFrequency,
      unlessZero(given.nodeStatusUpdateFrequency, "5m0s"),
    ),
    imageMinimumGCAge: unlessZero(given.imageMinimumGCAge, "2m0s"),
    imageMaximumGCAge: given.imageMaximumGCAge ?? "0s",
    volumeStatsAggPeriod: unlessZero(given.volumeStatsAggPeriod, "1m0s"),
    cpuManagerReconcilePeriod: unlessZero(given.cpuManagerReconcilePeriod, "10s"),
    runtimeRequestTimeout: unlessZero(given.runtimeRequestTimeout, "2m0s"),
    cpuCFSQuotaPeriod: given.cpuCFSQuotaPeriod ?? "100ms",
    evictionPressureTransitionPeriod: unlessZero(given.evictionPressureTransitionPeriod, "5m0s"),
    containerLogMonitorInterval: given.containerLogMonitorInterval ?? "10s",
    shutdownGracePeriod: given.shutdownGracePeriod ?? "0s",
    shutdownGracePeriodCriticalPods: given.shutdownGracePeriodCriticalPods ?? "0s",
  };
}

function access({ authentication = {}, authorization = {} }: PartialConfiguration) {
  return {
    authentication: {
      ...authentication,
      anonymous: { enabled: authentication.anonymous?.enabled ?? false },
      webhook: {
        enabled: authentication.webhook?.enabled ?? true,
        cacheTTL: unlessZero(authentication.webhook?.cacheTTL, "2m0s"),
      },
    },
    authorization: {
      mode: authorization.mode || "Webhook",
      webhook: {
        cacheAuthorizedTTL: unlessZero(authorization.webhook?.cacheAuthorizedTTL, "5m0s"),
        cacheUnauthorizedTTL: unlessZero(authorization.webhook?.cacheUnauthorizedTTL, "30s"),
      },
    },
  };
}

/** Defaults of two fields that exist only behind feature gates. */
function verificationPolicy(given: PartialConfiguration, gates: FeatureGates): string {
  const policy = given.imagePullCredentialsVerificationPolicy ?? "";
  if (policy !== "" || !gates.enabled("KubeletEnsureSecretPulledImages")) return policy;
  return "NeverVerifyPreloadedImages";
}

function crashLoopBackOff(
  given: PartialConfiguration,
  gates: FeatureGates,
): { readonly maxContainerRestartPeriod?: string | undefined } {
  const period = given.crashLoopBackOff?.maxContainerRestartPeriod;
  if (period !== undefined || !gates.enabled("KubeletCrashLoopBackOffMax")) {
    return { maxContainerRestartPeriod: period };
  }
  return { maxContainerRestartPeriod: "5m0s" };
}

/** Upstream's defaults without a file or drop-ins: the permissive settings of its early releases. */
export function withLegacyDefaults(configuration: KubeletConfiguration): KubeletConfiguration {
  const { authentication, authorization } = configuration;
  return {
    ...configuration,
    authentication: {
      ...authentication,
      anonymous: { enabled: true },
      webhook: { ...authentication.webhook, enabled: false },
    },
    authorization: { ...authorization, mode: "AlwaysAllow" },
    readOnlyPort: 10255,
  };
}
