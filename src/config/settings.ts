import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { defaultImageLimits, type ImageManagerLimits } from "../images/image-manager.ts";
import type { LogRotationConfig } from "../logs/rotation.ts";
import type { CgroupDriver } from "../resources/cgroup-names.ts";
import type { Reservations } from "../resources/node-allocatable.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { checkSysctlPatterns } from "../pods/sysctl-allowlist.ts";
import { isIpAddress } from "../sources/formats.ts";
import type { KubeletConfiguration } from "./defaults.ts";
import { parseGoDuration } from "./go-duration.ts";

/** What of KubeletConfiguration a kubelet honours, in the units it works with. */
export interface KubeletSettings {
  readonly podLogsRoot: string;
  readonly clusterDomain: string;
  readonly clusterDNS: readonly string[];
  /** Empty: none. */
  readonly resolvConf: string;
  readonly seccompDefault: boolean;
  /** Names of sysctls, and beginnings of names with `*` behind. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** Undefined: true on cgroup v1, false on v2. */
  readonly singleProcessOomKill: boolean | undefined;
  readonly cpuQuota: boolean;
  readonly cpuPeriodMicroseconds: bigint;
  /** −1: no limit. */
  readonly podPidsLimit: number;
  readonly reservations: Reservations;
  /** Whether containers may use swap (memorySwap.swapBehavior LimitedSwap). */
  readonly limitedSwap: boolean;
  /** `/` for none. */
  readonly cgroupRoot: string;
  /** Used when the runtime does not name its own. */
  readonly cgroupDriver: CgroupDriver;
  /** Ids of a pod with a user namespace of its own. */
  readonly idsPerPod: number;
  readonly syncFrequencyMs: number;
  readonly maxContainerRestartPeriodMs: number;
  readonly runtimeRequestTimeoutMs: number;
  readonly images: ImageManagerLimits;
  readonly logRotation: LogRotationConfig;
}

const defaultIdsPerPod = 65_536;
/** The default of crashLoopBackOff.maxContainerRestartPeriod while its feature gate is off. */
const defaultRestartPeriod = "5m0s";

/**
 * The settings of a valid configuration.
 * @throws PodwrightError (bad input) for values that upstream does not validate and podwright can't use
 */
export function kubeletSettings(configuration: KubeletConfiguration): KubeletSettings {
  const restartPeriod = configuration.crashLoopBackOff.maxContainerRestartPeriod ?? defaultRestartPeriod;
  const runtimeRequestTimeoutMs = milliseconds(configuration.runtimeRequestTimeout);
  const parallelPulls = configuration.serializeImagePulls ? 1 : configuration.maxParallelImagePulls;
  return {
    podLogsRoot: configuration.podLogsDir,
    clusterDomain: configuration.clusterDomain ?? "",
    clusterDNS: (configuration.clusterDNS ?? []).filter(isIpAddress),
    resolvConf: configuration.resolvConf,
    seccompDefault: configuration.seccompDefault,
    allowedUnsafeSysctls: checkSysctlPatterns(configuration.allowedUnsafeSysctls ?? []),
    singleProcessOomKill: configuration.singleProcessOOMKill,
    cpuQuota: configuration.cpuCFSQuota,
    cpuPeriodMicroseconds: BigInt(Math.round(milliseconds(configuration.cpuCFSQuotaPeriod) * 1000)),
    podPidsLimit: configuration.podPidsLimit,
    reservations: {
      lists: [configuration.systemReserved ?? {}, configuration.kubeReserved ?? {}],
      systemCpus: configuration.reservedSystemCPUs ?? "",
      enforced: configuration.enforceNodeAllocatable.includes("pods"),
    },
    limitedSwap: configuration.memorySwap?.swapBehavior === "LimitedSwap",
    cgroupRoot: cgroupRoot(configuration.cgroupRoot),
    cgroupDriver: cgroupDriver(configuration.cgroupDriver),
    idsPerPod: configuration.userNamespaces?.idsPerPod ?? defaultIdsPerPod,
    syncFrequencyMs: milliseconds(configuration.syncFrequency),
    maxContainerRestartPeriodMs: milliseconds(restartPeriod),
    runtimeRequestTimeoutMs,
    images: {
      ...defaultImageLimits,
      maxParallelImagePulls: parallelPulls,
      registryPullQps: configuration.registryPullQPS,
      registryBurst: configuration.registryBurst,
      requestTimeoutMs: runtimeRequestTimeoutMs,
    },
    logRotation: {
      maxSizeBytes: logSize(configuration.containerLogMaxSize),
      maxFiles: configuration.containerLogMaxFiles,
      maxWorkers: configuration.containerLogMaxWorkers,
      monitorIntervalMs: milliseconds(configuration.containerLogMonitorInterval),
    },
  };
}

/** Upstream finds this one wrong only when it makes its log manager, and does not start either. */
function logSize(text: string): number {
  try {
    return Number(parseQuantity(text).nanos / 1_000_000_000n);
  } catch (error) {
    const field = "containerLogMaxSize (--container-log-max-size)";
    throw new PodwrightError(ExitCode.badInput, `invalid configuration: ${field}: ${errorMessage(error)}`, {
      remedy: "give a number of bytes like 10Mi, or a negative one for no rotation",
    });
  }
}

/** A duration of a configuration, which is known to be one. */
export function milliseconds(duration: string): number {
  return parseGoDuration(duration) ?? 0;
}

/** Name servers that are no IP addresses: upstream passes them over with a warning. */
export function uselessNameServers({ clusterDNS = [] }: KubeletConfiguration): string[] {
  return clusterDNS.filter((address) => !isIpAddress(address));
}

/** A CRI endpoint as the field says it: a Unix socket, as URL or (deprecated upstream) as bare path. */
export function socketEndpoint(field: string, endpoint: string): string {
  const url = endpoint.startsWith("/") ? `unix://${endpoint}` : endpoint;
  if (/^unix:\/\/\/./u.test(url)) return url;
  throw new PodwrightError(
    ExitCode.badInput,
    `invalid configuration: ${field} ${JSON.stringify(endpoint)} is no Unix socket`,
    {
      remedy: "give one, e.g. unix:///run/containerd/containerd.sock",
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

function cgroupRoot(path = ""): string {
  const parts = path.split("/").filter((part) => part !== "");
  if (!parts.includes("..") && !parts.includes(".")) return `/${parts.join("/")}`;
  throw new PodwrightError(
    ExitCode.badInput,
    `invalid configuration: cgroupRoot (--cgroup-root) ${JSON.stringify(path)} must be a plain path`,
  );
}
