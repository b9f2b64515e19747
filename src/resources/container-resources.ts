import { containersOf } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { LinuxContainerResourcesSchema } from "../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../ports/message-init.ts";
import { milliCpuToQuota, milliCpuToShares } from "./cpu.ts";
import { formatPageSize, hugePageAmounts } from "./huge-pages.ts";
import { oomScoreAdjust } from "./oom.ts";
import { parseList, podLimits, podRequests, type Quantities } from "./pod-totals.ts";
import { hasPodLevelResources, qosClass } from "./qos.ts";
import { type Quantity, zeroQuantity } from "./quantity.ts";

/** What of the node and its configuration decides about resources. */
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
  /** Node allocatable by resource name: what an unset limit means to the downward API. */
  readonly allocatable: Readonly<Record<string, string | number>>;
}

/** What of it decides about swap. */
export type SwapSettings = Pick<ResourceSettings, "swapCapacityBytes" | "swapAccounting" | "cgroupVersion">;

export type LinuxResources = MessageInit<typeof LinuxContainerResourcesSchema>;

/** `linux.resources` of a container. */
export function containerResources(pod: Pod, container: Container, settings: ResourceSettings): LinuxResources {
  const requests = parseList(container.resources?.requests);
  const limits = parseList(container.resources?.limits);
  const resources = linuxResources(
    requests.get("cpu"),
    limitOrPodLevel(pod, limits, "cpu"),
    limitOrPodLevel(pod, limits, "memory"),
    settings,
  );
  return {
    ...resources,
    oomScoreAdj: oomScoreAdjust(pod, container, settings.memoryCapacityBytes),
    hugepageLimits: hugePageLimits(pod, limits, settings.hugePageSizes),
    ...swapLimit(pod, container, resources, settings),
  };
}

/** `linux.resources` of a sandbox: what the pod asks for as a whole, without its overhead. */
export function sandboxResources(pod: Pod, settings: ResourceSettings): LinuxResources {
  const limits = podLimits(pod, { excludeOverhead: true });
  return linuxResources(
    podRequests(pod, { excludeOverhead: true }).get("cpu"),
    limits.get("cpu") ?? zeroQuantity,
    limits.get("memory") ?? zeroQuantity,
    settings,
  );
}

/** `linux.overhead` of a sandbox: what the runtime class says that the sandbox itself needs, as request and limit. */
export function sandboxOverhead(pod: Pod, settings: ResourceSettings): LinuxResources {
  if (pod.spec.overhead === undefined) return {};
  const overhead = parseList(pod.spec.overhead);
  const cpu = overhead.get("cpu") ?? zeroQuantity;
  return linuxResources(cpu, cpu, overhead.get("memory") ?? zeroQuantity, settings);
}

/** A container without a limit of its own is held by the pod's (KEP-2837). */
function limitOrPodLevel(pod: Pod, limits: Quantities, resource: "cpu" | "memory"): Quantity {
  const own = limits.get(resource);
  if (own !== undefined && !own.isZero) return own;
  return (hasPodLevelResources(pod) ? parseList(pod.spec.resources?.limits).get(resource) : undefined) ?? zeroQuantity;
}

function linuxResources(
  cpuRequest: Quantity | undefined,
  cpuLimit: Quantity,
  memoryLimit: Quantity,
  settings: ResourceSettings,
): LinuxResources & { readonly memoryLimitInBytes: bigint; readonly unified: Record<string, string> } {
  return {
    cpuShares: milliCpuToShares((cpuRequest ?? cpuLimit).milliValue()),
    memoryLimitInBytes: memoryLimit.value(),
    ...(settings.cpuQuota && {
      cpuPeriod: settings.cpuPeriodMicroseconds,
      cpuQuota: milliCpuToQuota(cpuLimit.milliValue(), settings.cpuPeriodMicroseconds),
    }),
    unified: settings.cgroupVersion === 2 && !settings.singleProcessOomKill ? { "memory.oom.group": "1" } : {},
  };
}

/** On v1 the limit is that of memory and swap together; on v2 that of swap alone. */
function swapLimit(
  pod: Pod,
  container: Container,
  resources: { readonly memoryLimitInBytes: bigint; readonly unified: Record<string, string> },
  settings: ResourceSettings,
): LinuxResources {
  if (!settings.swapAccounting) return {};
  if (settings.cgroupVersion === 1) return { memorySwapLimitInBytes: resources.memoryLimitInBytes };
  const bytes = usesSwap(pod, container, settings) ? swapShare(container, settings) : 0n;
  return { unified: { ...resources.unified, "memory.swap.max": String(bytes) } };
}

/**
 * Whether a container may use swap (KEP-2400, LimitedSwap): on cgroup v2 those of burstable pods that are not critical,
 * when they ask for memory and for less than their limit.
 */
function usesSwap(pod: Pod, container: Container, settings: SwapSettings): boolean {
  const { swapCapacityBytes, swapAccounting, cgroupVersion } = settings;
  if (swapCapacityBytes === undefined || !swapAccounting || cgroupVersion === 1 || isCriticalPod(pod)) return false;
  const request = memoryOf(container, "requests");
  const limit = memoryOf(container, "limits");
  return qosClass(pod) === "Burstable" && !(request.isZero && limit.isZero) && request.compare(limit) !== 0;
}

/** As much of the machine's swap as the container asks for of its memory. */
function swapShare(container: Container, settings: ResourceSettings): bigint {
  const { memoryCapacityBytes, swapCapacityBytes = 0n } = settings;
  const request = memoryOf(container, "requests").value();
  if (memoryCapacityBytes <= 0n || request > memoryCapacityBytes) return 0n;
  return (request * swapCapacityBytes) / memoryCapacityBytes;
}

function memoryOf(container: Container, kind: "requests" | "limits"): Quantity {
  return parseList(container.resources?.[kind]).get("memory") ?? zeroQuantity;
}

/** Whether a resize would change what swap a running container has: runtimes can't do that in place. */
export function changesSwap(before: Pod, after: Pod, settings: SwapSettings): boolean {
  return containersOf(after.spec).some((container) => {
    const old = containersOf(before.spec).find(({ name }) => name === container.name);
    if (old === undefined) return false;
    const restarts = old.resizePolicy?.some(
      ({ resourceName, restartPolicy }) => resourceName === "memory" && restartPolicy === "RestartContainer",
    );
    const same = memoryOf(old, "requests").compare(memoryOf(container, "requests")) === 0;
    return !same && restarts !== true && (usesSwap(before, old, settings) || usesSwap(after, container, settings));
  });
}

/** A limit for every page size of the machine, 0 where none is asked for: otherwise there would be no limit. */
function hugePageLimits(
  pod: Pod,
  limits: Quantities,
  pageSizes: readonly bigint[],
): { pageSize: string; limit: bigint }[] {
  const podLevel = hasPodLevelResources(pod) ? parseList(pod.spec.resources?.limits) : [];
  const wanted = hugePageAmounts([...podLevel, ...limits]);
  return pageSizes.map((size) => ({ pageSize: formatPageSize(size), limit: wanted.get(size) ?? 0n }));
}
