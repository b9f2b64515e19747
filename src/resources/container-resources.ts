import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerEdits, LinuxResources } from "./container-edits.ts";
import { milliCpuToQuota, milliCpuToShares } from "./cpu.ts";
import type { NodeMemoryQos } from "./memory-qos.ts";
import { oomScoreAdjust } from "./oom.ts";
import { parseList, podLimits, podRequests, type Quantities } from "./pod-totals.ts";
import { hasPodLevelResources } from "./qos.ts";
import { type Quantity, zeroQuantity } from "./quantity.ts";

/** The node's resource settings. */
export interface ResourceSettings {
  /** KubeletConfiguration's cpuCFSQuota, true by default: whether CPU limits are enforced. */
  readonly cpuQuota: boolean;
  /** KubeletConfiguration's cpuCFSQuotaPeriod in microseconds, 100000 by default. */
  readonly cpuPeriodMicroseconds: bigint;
  readonly cgroupVersion: 1 | 2;
  /** KubeletConfiguration's singleProcessOOMKill; always true on cgroup v1, false by default on v2. */
  readonly singleProcessOomKill: boolean;
  /** Whether the kernel accounts swap in cgroups (memory.memsw.limit_in_bytes, memory.swap.max). */
  readonly swapAccounting: boolean;
  /** The machine's swap if memorySwap.swapBehavior is LimitedSwap; undefined: NoSwap. */
  readonly swapCapacityBytes?: bigint;
  /** The machine's memory. */
  readonly memoryCapacityBytes: bigint;
  /** The machine's huge page sizes in bytes. */
  readonly hugePageSizes: readonly bigint[];
  /** Undefined: without the feature gate MemoryQoS, and on cgroup v1. */
  readonly memoryQos?: NodeMemoryQos | undefined;
  /** Node allocatable by resource name: the downward API's value for an unset limit. */
  readonly allocatable: Readonly<Record<string, string | number>>;
}

/** A container's `linux.resources`: its spec and resource managers' edits. */
export function containerResources(
  pod: Pod,
  container: Container,
  settings: ResourceSettings,
  edits: ContainerEdits,
): LinuxResources {
  const requests = parseList(container.resources?.requests);
  const limits = parseList(container.resources?.limits);
  return {
    ...linuxResources(
      requests.get("cpu"),
      limitOrPodLevel(pod, limits, "cpu"),
      limitOrPodLevel(pod, limits, "memory"),
      settings,
    ),
    oomScoreAdj: oomScoreAdjust(pod, container, settings.memoryCapacityBytes),
    ...edits.resources,
  };
}

/** A sandbox's `linux.resources`: the pod's total without its overhead. */
export function sandboxResources(pod: Pod, settings: ResourceSettings): LinuxResources {
  const limits = podLimits(pod, { excludeOverhead: true });
  return {
    ...linuxResources(
      podRequests(pod, { excludeOverhead: true }).get("cpu"),
      limits.get("cpu") ?? zeroQuantity,
      limits.get("memory") ?? zeroQuantity,
      settings,
    ),
    unified: oomGroup(settings),
  };
}

/** A sandbox's `linux.overhead`: the runtime class's overhead, as request and limit. */
export function sandboxOverhead(pod: Pod, settings: ResourceSettings): LinuxResources {
  if (pod.spec.overhead === undefined) return {};
  const overhead = parseList(pod.spec.overhead);
  const cpu = overhead.get("cpu") ?? zeroQuantity;
  return { ...linuxResources(cpu, cpu, overhead.get("memory") ?? zeroQuantity, settings), unified: oomGroup(settings) };
}

/** `memory.oom.group` (singleProcessOOMKill): an OOM kill ends all processes of a container. */
export function oomGroup({ cgroupVersion, singleProcessOomKill }: ResourceSettings): Record<string, string> {
  return cgroupVersion === 2 && !singleProcessOomKill ? { "memory.oom.group": "1" } : {};
}

/** The container's own limit, else the pod's (KEP-2837). */
export function limitOrPodLevel(pod: Pod, limits: Quantities, resource: "cpu" | "memory"): Quantity {
  const own = limits.get(resource);
  if (own !== undefined && !own.isZero) return own;
  return (hasPodLevelResources(pod) ? parseList(pod.spec.resources?.limits).get(resource) : undefined) ?? zeroQuantity;
}

function linuxResources(
  cpuRequest: Quantity | undefined,
  cpuLimit: Quantity,
  memoryLimit: Quantity,
  settings: ResourceSettings,
): LinuxResources {
  return {
    cpuShares: milliCpuToShares((cpuRequest ?? cpuLimit).milliValue()),
    memoryLimitInBytes: memoryLimit.value(),
    ...(settings.cpuQuota && {
      cpuPeriod: settings.cpuPeriodMicroseconds,
      cpuQuota: milliCpuToQuota(cpuLimit.milliValue(), settings.cpuPeriodMicroseconds),
    }),
  };
}
