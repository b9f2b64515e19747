import type { KubeletSettings } from "../config/settings.ts";
import type { CredentialPlugins } from "../images/make-images.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import {
  capacityForPods,
  nodeAllocatable,
  type NodeCapacity,
  reservationProblems,
} from "../resources/node-allocatable.ts";
import type { ResourceSettings } from "../resources/container-resources.ts";
import type { MemoryQos } from "../resources/memory-qos.ts";
import { sysctlAllowlist } from "../pods/sysctl-allowlist.ts";
import type { PodIds } from "../runtime/config/id-ranges.ts";
import type { MachineInfo } from "./machine.ts";

/** As upstream (ContainerGCPeriod). */
const garbagePeriodMs = 60_000;

/** The node's name, paths, and user namespace IDs. */
export interface NodeIdentity {
  readonly nodeName: string;
  readonly rootDirectory: string;
  readonly hostIPs: readonly string[];
  readonly podIds: PodIds;
  /** Paths of files with the node's own registry credentials, in order of precedence. */
  readonly credentialFiles: readonly string[];
  /** Undefined: none. */
  readonly credentialPlugins?: CredentialPlugins | undefined;
}

/** The machine's resources that are shared among pods. */
function podCapacity(settings: KubeletSettings, machine: MachineInfo): NodeCapacity {
  const { processors, memoryBytes, pids, hugePages, ephemeralStorageBytes } = machine;
  const capacity = { milliCpu: BigInt(processors) * 1000n, memoryBytes, pids, hugePages };
  return settings.countsStorage ? { ...capacity, ephemeralStorageBytes } : capacity;
}

function mostPods({ podsPerCore, maxPods }: KubeletSettings, processors: number): number {
  return podsPerCore > 0 ? Math.min(processors * podsPerCore, maxPods) : maxPods;
}

/** @throws PodwrightError (bad input) when the reservations exceed the machine's resources */
export function checkReservations(settings: KubeletSettings, machine: MachineInfo): void {
  const problems = reservationProblems(podCapacity(settings, machine), settings.reservations);
  if (problems.length === 0) return;
  const messages = problems.map(({ message }) => message).join(" ");
  const fields = problems.map((problem) => problem.fields).join("; ");
  throw new PodwrightError(ExitCode.badInput, `invalid Node Allocatable configuration. ${messages}`, {
    remedy: `lower ${fields}`,
  });
}

function cpuSettings({ cpuQuota, cpuPeriodMicroseconds }: KubeletSettings) {
  return { cpuQuota, cpuPeriodMicroseconds };
}

/** The kernel of v1 knows neither memory.min nor memory.high. */
function memoryQosOf({ memoryQos }: KubeletSettings, { cgroupVersion }: MachineInfo): MemoryQos | undefined {
  return cgroupVersion === 2 ? memoryQos : undefined;
}

/** The machine's memory less what is reserved, whether or not pods are held to it. */
function allocatableMemory({ reservations }: KubeletSettings, capacity: NodeCapacity): bigint {
  return capacityForPods(capacity, { ...reservations, enforced: true }).memoryBytes;
}

function resourceSettings(settings: KubeletSettings, machine: MachineInfo, capacity: NodeCapacity): ResourceSettings {
  const { cgroupVersion, memoryBytes, processors } = machine;
  const memoryQos = memoryQosOf(settings, machine);
  const pods = String(mostPods(settings, processors));
  return {
    ...cpuSettings(settings),
    cgroupVersion,
    singleProcessOomKill: settings.singleProcessOomKill ?? cgroupVersion === 1,
    swapAccounting: machine.swapAccounting,
    memoryCapacityBytes: memoryBytes,
    hugePageSizes: machine.hugePageSizes,
    allocatable: { ...nodeAllocatable(capacity, settings.reservations), pods },
    ...(settings.limitedSwap && { swapCapacityBytes: machine.swapBytes }),
    memoryQos: memoryQos && {
      ...memoryQos,
      allocatableBytes: allocatableMemory(settings, capacity),
      pageBytes: machine.pageBytes,
    },
  };
}

function cgroupsConfig(
  settings: KubeletSettings,
  machine: MachineInfo,
  capacity: NodeCapacity,
): Omit<KubeletConfig["cgroups"], "driver"> {
  const { cgroupRoot, podPidsLimit, reservations, qosReservedMemoryPercent: percent } = settings;
  return {
    ...cpuSettings(settings),
    cgroupRoot,
    podPidsLimit,
    ...capacityForPods(capacity, reservations),
    enforced: reservations.enforced,
    memoryQos: memoryQosOf(settings, machine),
    reservedMemory:
      percent === undefined ? undefined : { percent, allocatableBytes: allocatableMemory(settings, capacity) },
  };
}

/**
 * The kubelet's configuration from these settings, this machine and its runtime. Pure.
 * @throws PodwrightError (bad input) when the reservations exceed the machine's resources
 */
export function kubeletConfig(
  { podIds, credentialFiles, credentialPlugins, ...node }: NodeIdentity,
  settings: KubeletSettings,
  machine: MachineInfo,
  runtime: Pick<RuntimeInfo, "name" | "cgroupDriver" | "supplementalGroupsPolicy">,
): KubeletConfig {
  // Runtime and kubelet must use the same cgroup driver, and the runtime's cannot be set from here (KEP-4033).
  const cgroupDriver = runtime.cgroupDriver ?? settings.cgroupDriver;
  const { processors } = machine;
  checkReservations(settings, machine);
  const capacity = podCapacity(settings, machine);
  return {
    node: {
      ...node,
      cgroupDriver,
      cgroupRoot: settings.cgroupRoot,
      podLogsRoot: settings.podLogsRoot,
      containerLogsRoot: settings.containerLogsRoot,
      clusterDomain: settings.clusterDomain,
      clusterDNS: settings.clusterDNS,
      resolvConf: settings.resolvConf,
      seccompDefault: settings.seccompDefault,
      seLinux: machine.seLinux,
      maskedPaths: machine.maskedPaths,
      resources: resourceSettings(settings, machine, capacity),
    },
    cgroups: { ...cgroupsConfig(settings, machine, capacity), driver: cgroupDriver },
    pleg: { relistPeriodMs: 1000, eventedRelistPeriodMs: 10_000, channelCapacity: 1000, inspections: 32 },
    worker: {
      syncFrequencyMs: settings.syncFrequencyMs,
      errorBackOffMs: 10_000,
      // A call may hang for its whole timeout before a fresh observation is possible.
      observeLimitMs: settings.runtimeRequestTimeoutMs + 30_000,
      maxContainerRestartPeriodMs: settings.maxContainerRestartPeriodMs,
      garbage: settings.garbage,
    },
    logRotation: settings.logRotation,
    garbage: { ...settings.garbage, periodMs: garbagePeriodMs },
    images: { ...settings.images, verification: settings.imageVerification, credentialFiles, credentialPlugins },
    podIds,
    // docs/performance.md: with this limit all are as early as with all at once, and half of them much earlier.
    parallelStarts: processors + 4,
    housekeepingPeriodMs: 2000,
    volumeStatsPeriodMs: settings.volumeStatsPeriodMs,
    usesQuotas: settings.usesQuotas,
    runtimeName: runtime.name,
    admission: {
      sysctls: sysctlAllowlist(machine.kernelRelease, settings.allowedUnsafeSysctls),
      appArmor: machine.appArmor,
      supplementalGroupsPolicy: runtime.supplementalGroupsPolicy,
    },
  };
}
