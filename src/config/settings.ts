import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import {
  parseThresholds,
  type Threshold,
  uselessStatements,
  type ThresholdStatements,
} from "../eviction/thresholds.ts";
import type { ImageGarbagePolicy } from "../images/image-garbage.ts";
import { defaultImageLimits, type ImageManagerLimits } from "../images/image-manager.ts";
import type { VerificationPolicy } from "../images/pull-record.ts";
import type { LogRotationConfig } from "../logs/rotation.ts";
import type { NodeSetupSettings } from "../node-setup/node-setup.ts";
import type { CgroupDriver } from "../resources/cgroup-names.ts";
import type { MemoryQos } from "../resources/memory-qos.ts";
import { type EvictionReserve, type Reservations, reservedMemoryBytes } from "../resources/node-allocatable.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { checkSysctlPatterns } from "../pods/sysctl-allowlist.ts";
import { defaultGarbagePolicy, type GarbagePolicy } from "../runtime/actions/garbage.ts";
import { isIpAddress } from "../base/formats.ts";
import type { KubeletConfiguration } from "./defaults.ts";
import type { NodeFlagValues } from "./flags.ts";
import { featureGates } from "./feature-gates.ts";
import { memoryQos, nodeSetupSettings, plainPath, qosReservedMemoryPercent } from "./node-setup-settings.ts";
import { parseGoDuration } from "../base/go-duration.ts";
import { type ShutdownPeriod, shutdownPeriods } from "../shutdown/periods.ts";

/** The configuration's eviction fields. */
export interface EvictionFields {
  readonly thresholds: readonly Threshold[];
  /** evictionPressureTransitionPeriod. */
  readonly transitionMs: number;
  /** evictionMaxPodGracePeriod. */
  readonly maxPodGraceSeconds: number;
  /** localStorageCapacityIsolation. */
  readonly enforcesStorageLimits: boolean;
  readonly kernelMemcgNotification: boolean;
  /** systemReserved and kubeReserved together. */
  readonly reservedMemoryBytes: number;
  /** Whether memory.available is the kernel's MemAvailable instead of the capacity minus the working set. */
  readonly countsMemAvailable: boolean;
}

/** The honoured fields of KubeletConfiguration, in internal units. */
export interface KubeletSettings {
  readonly podLogsRoot: string;
  readonly containerLogsRoot: string;
  readonly clusterDomain: string;
  readonly clusterDNS: readonly string[];
  /** Empty: none. */
  readonly resolvConf: string;
  readonly seccompDefault: boolean;
  /** Names of sysctls, or prefixes followed by `*`. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** Undefined: true on cgroup v1, false on v2. */
  readonly singleProcessOomKill: boolean | undefined;
  readonly cpuQuota: boolean;
  readonly cpuPeriodMicroseconds: bigint;
  /** −1: no limit. */
  readonly podPidsLimit: number;
  readonly reservations: Reservations;
  readonly eviction: EvictionFields;
  /** Whether pods' local storage is accounted for (localStorageCapacityIsolation). */
  readonly countsStorage: boolean;
  /** Whether containers may use swap (memorySwap.swapBehavior LimitedSwap). */
  readonly limitedSwap: boolean;
  /** `/` for none; undefined: pods have no cgroups of their own (cgroupsPerQOS is false). */
  readonly cgroupRoot: string | undefined;
  /** For runtimes that do not report theirs. */
  readonly cgroupDriver: CgroupDriver;
  readonly maxPods: number;
  /** 0: no limit per CPU. */
  readonly podsPerCore: number;
  /** Number of IDs for a pod with a user namespace. */
  readonly idsPerPod: number;
  readonly syncFrequencyMs: number;
  /** How often volumes are measured; 0 or less: never. */
  readonly volumeStatsPeriodMs: number;
  /** Project quotas measure volumes where they can (LocalStorageCapacityIsolationFSQuotaMonitoring). */
  readonly usesQuotas: boolean;
  /** Drivers are queried for the health of volumes (CSIVolumeHealth). */
  readonly asksVolumeHealth: boolean;
  readonly maxContainerRestartPeriodMs: number;
  readonly runtimeRequestTimeoutMs: number;
  readonly images: ImageManagerLimits;
  readonly imageGarbage: ImageGarbagePolicy;
  readonly garbage: GarbagePolicy;
  readonly imageVerification: VerificationPolicy;
  readonly logRotation: LogRotationConfig;
  /** makeIPTablesUtilChains. */
  readonly makesUtilityChains: boolean;
  readonly nodeSetup: NodeSetupSettings;
  /** Undefined: no memory protection or throttling. */
  readonly memoryQos: MemoryQos | undefined;
  /** Undefined: no memory is withheld from lower QoS classes. */
  readonly qosReservedMemoryPercent: number | undefined;
  /** The pods' grace periods at a node shutdown; empty: shutdowns are not delayed. */
  readonly shutdownPeriods: readonly ShutdownPeriod[];
}

/** PID_MAX_LIMIT: the kernel rejects a higher limit. */
const mostProcesses = 4_194_304;
const defaultIdsPerPod = 65_536;
/** The default of crashLoopBackOff.maxContainerRestartPeriod while its feature gate is off. */
const defaultRestartPeriod = "5m0s";

function imageGarbagePolicy(configuration: KubeletConfiguration): ImageGarbagePolicy {
  return {
    highThresholdPercent: configuration.imageGCHighThresholdPercent,
    lowThresholdPercent: configuration.imageGCLowThresholdPercent,
    minAgeMs: milliseconds(configuration.imageMinimumGCAge),
    maxAgeMs: milliseconds(configuration.imageMaximumGCAge),
  };
}

function volumeSettings({
  volumeStatsAggPeriod,
  localStorageCapacityIsolation,
  featureGates: settings,
}: KubeletConfiguration): Pick<KubeletSettings, "volumeStatsPeriodMs" | "usesQuotas" | "asksVolumeHealth"> {
  const gates = featureGates(settings);
  return {
    volumeStatsPeriodMs: milliseconds(volumeStatsAggPeriod),
    usesQuotas: localStorageCapacityIsolation && gates.enabled("LocalStorageCapacityIsolationFSQuotaMonitoring"),
    asksVolumeHealth: gates.enabled("CSIVolumeHealth"),
  };
}

/** Flags without a field of KubeletConfiguration. */
type SettingFlags = Pick<
  NodeFlagValues,
  | "experimentalAllocatableIgnoreEviction"
  | "minimumContainerTtlDuration"
  | "maximumDeadContainersPerContainer"
  | "maximumDeadContainers"
  | "evictionMemory"
>;

/**
 * The settings of a valid configuration.
 * @throws PodwrightError (bad input) for unusable values that upstream does not validate
 */
export function kubeletSettings(configuration: KubeletConfiguration, flags: SettingFlags = {}): KubeletSettings {
  const restartPeriod = configuration.crashLoopBackOff.maxContainerRestartPeriod ?? defaultRestartPeriod;
  const runtimeRequestTimeoutMs = milliseconds(configuration.runtimeRequestTimeout);
  const statements = thresholdStatements(configuration);
  const parallelPulls = configuration.serializeImagePulls ? 1 : configuration.maxParallelImagePulls;
  const reserved = [configuration.systemReserved ?? {}, configuration.kubeReserved ?? {}];
  return {
    podLogsRoot: configuration.podLogsDir,
    containerLogsRoot: "/var/log/containers",
    clusterDomain: configuration.clusterDomain ?? "",
    clusterDNS: (configuration.clusterDNS ?? []).filter(isIpAddress),
    resolvConf: configuration.resolvConf,
    seccompDefault: configuration.seccompDefault,
    allowedUnsafeSysctls: checkSysctlPatterns(configuration.allowedUnsafeSysctls ?? []),
    singleProcessOomKill: configuration.singleProcessOOMKill,
    cpuQuota: configuration.cpuCFSQuota,
    cpuPeriodMicroseconds: BigInt(Math.round(milliseconds(configuration.cpuCFSQuotaPeriod) * 1000)),
    podPidsLimit: Math.min(configuration.podPidsLimit, mostProcesses),
    reservations: {
      lists: reserved,
      systemCpus: configuration.reservedSystemCPUs ?? "",
      enforced: statements.enforcesAllocatable,
      eviction: flags.experimentalAllocatableIgnoreEviction === true ? undefined : evictionReserve(statements),
    },
    eviction: {
      thresholds: thresholds(statements),
      transitionMs: milliseconds(configuration.evictionPressureTransitionPeriod),
      maxPodGraceSeconds: configuration.evictionMaxPodGracePeriod ?? 0,
      enforcesStorageLimits: configuration.localStorageCapacityIsolation,
      kernelMemcgNotification: configuration.kernelMemcgNotification ?? false,
      reservedMemoryBytes: Number(reservedMemoryBytes({ lists: reserved })),
      countsMemAvailable: isMemAvailable(flags.evictionMemory ?? "workingSet"),
    },
    countsStorage: configuration.localStorageCapacityIsolation,
    limitedSwap: configuration.memorySwap?.swapBehavior === "LimitedSwap",
    cgroupRoot: configuration.cgroupsPerQOS
      ? plainPath("cgroupRoot (--cgroup-root)", configuration.cgroupRoot ?? "")
      : undefined,
    cgroupDriver: cgroupDriver(configuration.cgroupDriver),
    maxPods: configuration.maxPods,
    podsPerCore: configuration.podsPerCore ?? 0,
    idsPerPod: configuration.userNamespaces?.idsPerPod ?? defaultIdsPerPod,
    syncFrequencyMs: milliseconds(configuration.syncFrequency),
    ...volumeSettings(configuration),
    maxContainerRestartPeriodMs: milliseconds(restartPeriod),
    runtimeRequestTimeoutMs,
    images: {
      ...defaultImageLimits,
      maxParallelImagePulls: parallelPulls,
      registryPullQps: configuration.registryPullQPS,
      registryBurst: configuration.registryBurst,
      requestTimeoutMs: runtimeRequestTimeoutMs,
    },
    imageVerification: imageVerification(configuration),
    imageGarbage: imageGarbagePolicy(configuration),
    garbage: garbagePolicy(flags),
    logRotation: {
      maxSizeBytes: logSize(configuration.containerLogMaxSize),
      maxFiles: configuration.containerLogMaxFiles,
      maxWorkers: configuration.containerLogMaxWorkers,
      monitorIntervalMs: milliseconds(configuration.containerLogMonitorInterval),
    },
    makesUtilityChains: configuration.makeIPTablesUtilChains,
    nodeSetup: nodeSetupSettings(configuration),
    memoryQos: memoryQos(configuration),
    qosReservedMemoryPercent: qosReservedMemoryPercent(configuration),
    shutdownPeriods: shutdownPeriodsOf(configuration),
  };
}

function shutdownPeriodsOf(configuration: KubeletConfiguration): readonly ShutdownPeriod[] {
  const { shutdownGracePeriod, shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority = [] } = configuration;
  return shutdownPeriods(
    milliseconds(shutdownGracePeriod),
    milliseconds(shutdownGracePeriodCriticalPods),
    shutdownGracePeriodByPodPriority.map(({ priority, shutdownGracePeriodSeconds: graceSeconds }) => ({
      priority,
      graceSeconds,
    })),
  );
}

function thresholdStatements(configuration: KubeletConfiguration): ThresholdStatements {
  return {
    hard: configuration.evictionHard ?? {},
    soft: configuration.evictionSoft ?? {},
    softGracePeriods: configuration.evictionSoftGracePeriod ?? {},
    minimumReclaim: configuration.evictionMinimumReclaim ?? {},
    enforcesAllocatable: configuration.enforceNodeAllocatable.includes("pods"),
  };
}

/** Accepted thresholds without effect. */
export function uselessThresholds(configuration: KubeletConfiguration): string[] {
  return uselessStatements(thresholdStatements(configuration));
}

/** Invalid thresholds prevent the start, as upstream. */
function thresholds(statements: ThresholdStatements): Threshold[] {
  try {
    return parseThresholds(statements, parseGoDuration);
  } catch (error) {
    throw new PodwrightError(ExitCode.badInput, `invalid configuration: eviction: ${errorMessage(error)}`, {
      remedy: "see evictionHard, evictionSoft, evictionSoftGracePeriod and evictionMinimumReclaim",
    });
  }
}

function evictionReserve(statements: ThresholdStatements): EvictionReserve {
  const hard = thresholds({ ...statements, soft: {}, enforcesAllocatable: false });
  const of = (signal: Threshold["signal"]): Threshold["value"] | undefined =>
    hard.find((threshold) => threshold.signal === signal)?.value;
  return { memory: of("memory.available"), ephemeralStorage: of("nodefs.available") };
}

function isMemAvailable(text: string): boolean {
  if (text === "MemAvailable" || text === "workingSet") return text === "MemAvailable";
  throw new PodwrightError(ExitCode.badInput, `invalid --eviction-memory ${JSON.stringify(text)}`, {
    remedy: "use workingSet or MemAvailable",
  });
}

/** A negative age prevents the start, as upstream. */
function garbagePolicy(flags: SettingFlags): GarbagePolicy {
  const { minimumContainerTtlDuration: age = "0s" } = flags;
  const minAgeMs = milliseconds(age);
  if (minAgeMs < 0) {
    throw new PodwrightError(ExitCode.badInput, `invalid minimum garbage collection age: ${age}`, {
      remedy: "set --minimum-container-ttl-duration to 0 or more",
    });
  }
  const { maxPerPodContainer, maxContainers } = defaultGarbagePolicy;
  return {
    minAgeMs,
    maxPerPodContainer: flags.maximumDeadContainersPerContainer ?? maxPerPodContainer,
    maxContainers: flags.maximumDeadContainers ?? maxContainers,
  };
}

/** Already validated; empty while the feature gate is off. */
function imageVerification(configuration: KubeletConfiguration): VerificationPolicy {
  const { imagePullCredentialsVerificationPolicy: policy, preloadedImagesVerificationAllowlist = [] } = configuration;
  return {
    policy: (policy || "Off") as VerificationPolicy["policy"],
    allowlist: preloadedImagesVerificationAllowlist,
  };
}

/** Upstream fails in its log manager instead, and does not start either. */
function logSize(text: string): number {
  try {
    return Number(parseQuantity(text).nanos / 1_000_000_000n);
  } catch (error) {
    const field = "containerLogMaxSize (--container-log-max-size)";
    throw new PodwrightError(ExitCode.badInput, `invalid configuration: ${field}: ${errorMessage(error)}`, {
      remedy: "use a number of bytes like 10Mi, or a negative one for no rotation",
    });
  }
}

/** Expects a valid duration. */
export function milliseconds(duration: string): number {
  return parseGoDuration(duration) ?? 0;
}

/** Name servers that are not IP addresses: ignored with a warning, as upstream. */
export function uselessNameServers({ clusterDNS = [] }: KubeletConfiguration): string[] {
  return clusterDNS.filter((address) => !isIpAddress(address));
}

/** The Unix socket of a CRI endpoint: a URL or (deprecated upstream) a bare path. */
export function socketEndpoint(field: string, endpoint: string): string {
  const url = endpoint.startsWith("/") ? `unix://${endpoint}` : endpoint;
  if (/^unix:\/\/\/./u.test(url)) return url;
  throw new PodwrightError(
    ExitCode.badInput,
    `invalid configuration: ${field} ${JSON.stringify(endpoint)} is not a Unix socket`,
    {
      remedy: "use one, e.g. unix:///run/containerd/containerd.sock",
    },
  );
}

function cgroupDriver(driver: string): CgroupDriver {
  if (driver === "cgroupfs" || driver === "systemd") return driver;
  throw new PodwrightError(
    ExitCode.badInput,
    `invalid configuration: cgroupDriver (--cgroup-driver) ${JSON.stringify(driver)} must be "cgroupfs" or "systemd"`,
  );
}
