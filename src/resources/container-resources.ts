import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerEdits, LinuxResources } from "./container-edits.ts";
import { milliCpuToQuota, milliCpuToShares } from "./cpu.ts";
import type { NodeMemoryQos } from "./memory-qos.ts";
import { oomScoreAdjust } from "./oom.ts";
import { parseList, podLimits, podRequests, type Quantities } from "./pod-totals.ts";
import { hasPodLevelResources } from "./qos.ts";
import { type Quantity, zeroQuantity } from "./quantity.ts";

/** The node's settings about resources. */
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
  /** The machine's swap when KubeletConfiguration's memorySwap.swapBehavior is LimitedSwap; undefined: NoSwap. */
  readonly swapCapacityBytes?: bigint;
  /** The machine's memory. */
  readonly memoryCapacityBytes: bigint;
  /** Sizes of huge pages that the machine has, in bytes. */
  readonly hugePageSizes: readonly bigint[];
  /** Undefined: without the feature gate MemoryQoS, and on cgroup v1. */
  readonly memoryQos?: NodeMemoryQos | undefined;
  /** Node allocatable by resource name: what an unset limit means to the downward API. */
  readonly allocatable: Readonly<Record<string, string | number>>;
}

/** `linux.resources` of a container: what its spec says, and what resource managers give it besides. */
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

/** `linux.resources` of a sandbox: the pod's total, without its overhead. */
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

/** `linux.overhead` of a sandbox: what the runtime class says that the sandbox itself needs, as request and limit. */
export function sandboxOverhead(pod: Pod, settings: ResourceSettings): LinuxResources {
  if (pod.spec.overhead === undefined) return {};
  const overhead = parseList(pod.spec.overhead);
  const cpu = overhead.get("cpu") ?? zeroQuantity;
  return { ...linuxResources(cpu, cpu, overhead.get("memory") ?? zeroQuantity, settings), unified: oomGroup(settings) };
}

/** `memory.oom.group` (KubeletConfiguration's singleProcessOOMKill): what runs in one container is killed as a whole. */
export function oomGroup({ cgroupVersion, singleProcessOomKill }: ResourceSettings): Record<string, string> {
  return cgroupVersion === 2 && !singleProcessOomKill ? { "memory.oom.group": "1" } : {};
}

/** A container without a limit of its own is held by the pod's (KEP-2837). */
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
