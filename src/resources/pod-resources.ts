import type { Pod } from "../api/pod.ts";
import type { CgroupResources } from "../ports/cgroups.ts";
import { milliCpuToQuota, milliCpuToShares, minShares } from "./cpu.ts";
import { formatPageSize, hugePageAmounts } from "./huge-pages.ts";
import type { NodeCapacity } from "./node-allocatable.ts";
import { limitIsDeclared, podLimits, podRequests } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";

export interface PodCgroupSettings {
  /** KubeletConfiguration's cpuCFSQuota. */
  readonly cpuQuota: boolean;
  /** KubeletConfiguration's cpuCFSQuotaPeriod in microseconds. */
  readonly cpuPeriodMicroseconds: bigint;
  /** KubeletConfiguration's podPidsLimit; −1: no limit. */
  readonly podPidsLimit: number;
  /** Sizes of huge pages that the machine has, in bytes. */
  readonly hugePageSizes: readonly bigint[];
}

/**
 * What a pod's cgroup may hold, overhead included. A limit applies only when it bounds every container: the sum of some
 * limits would hold the others back too.
 */
export function podCgroupResources(pod: Pod, settings: PodCgroupSettings): CgroupResources {
  const qos = qosClass(pod);
  const always = {
    ...(settings.podPidsLimit > 0 && { pidsLimit: settings.podPidsLimit }),
    ...hugePageLimits(pod, settings.hugePageSizes),
  };
  if (qos === "BestEffort") return { cpuShares: Number(minShares), ...always };
  const limits = podLimits(pod);
  const cpuLimited = qos === "Guaranteed" || limitIsDeclared(pod, "cpu");
  const memoryLimited = qos === "Guaranteed" || limitIsDeclared(pod, "memory");
  const quota = milliCpuToQuota(limits.get("cpu")?.milliValue() ?? 0n, settings.cpuPeriodMicroseconds);
  return {
    cpuShares: Number(milliCpuToShares(podRequests(pod).get("cpu")?.milliValue() ?? 0n)),
    ...(cpuLimited && {
      cpuQuotaMicroseconds: settings.cpuQuota ? Number(quota) : -1,
      cpuPeriodMicroseconds: Number(settings.cpuPeriodMicroseconds),
    }),
    ...(memoryLimited && { memoryLimitBytes: Number(limits.get("memory")?.value() ?? 0n) }),
    ...always,
  };
}

/** The pod's request for each page size of the machine: 0 if unset, or it would be unlimited. */
function hugePageLimits(pod: Pod, sizes: readonly bigint[]): Pick<CgroupResources, "hugePageLimitBytes"> {
  if (sizes.length === 0) return {};
  const wanted = hugePageAmounts(podRequests(pod));
  return {
    hugePageLimitBytes: Object.fromEntries(sizes.map((size) => [formatPageSize(size), Number(wanted.get(size) ?? 0n)])),
  };
}

/** CPU weights of the QoS cgroups: burstable gets what its pods ask for together, best effort the least there is. */
export function qosCgroupResources(activePods: readonly Pod[]): {
  readonly burstable: CgroupResources;
  readonly bestEffort: CgroupResources;
} {
  const requested = activePods
    .filter((pod) => qosClass(pod) === "Burstable")
    .reduce((sum, pod) => sum + (podRequests(pod).get("cpu")?.milliValue() ?? 0n), 0n);
  return {
    burstable: { cpuShares: Number(milliCpuToShares(requested)) },
    bestEffort: { cpuShares: Number(minShares) },
  };
}

/**
 * What the cgroup of all pods may hold: the machine's capacity less what is reserved for the system and the kubelet
 * (eviction thresholds are not taken off, KEP "node allocatable").
 */
export function kubepodsResources({
  milliCpu,
  memoryBytes,
  pids,
  hugePages = new Map(),
}: NodeCapacity): CgroupResources {
  const pages = [...hugePages].map(([size, bytes]) => [formatPageSize(size), Number(bytes)] as const);
  return {
    cpuShares: Number(milliCpuToShares(milliCpu)),
    memoryLimitBytes: Number(memoryBytes),
    ...(pids !== undefined && { pidsLimit: Number(pids) }),
    ...(pages.length > 0 && { hugePageLimitBytes: Object.fromEntries(pages) }),
  };
}
