import type { Pod } from "../api/pod.ts";
import type { CgroupResources } from "../ports/cgroups.ts";
import { milliCpuToQuota, milliCpuToShares, minShares } from "./cpu.ts";
import { formatPageSize, hugePageAmounts } from "./huge-pages.ts";
import { type MemoryQos, podMemoryProtection } from "./memory-qos.ts";
import { limitIsDeclared, podLimits, podRequests } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";

export interface PodCgroupSettings {
  /** KubeletConfiguration's cpuCFSQuota. */
  readonly cpuQuota: boolean;
  /** KubeletConfiguration's cpuCFSQuotaPeriod in microseconds. */
  readonly cpuPeriodMicroseconds: bigint;
  /** podPidsLimit; −1: no limit. */
  readonly podPidsLimit: number;
  /** The machine's huge page sizes in bytes. */
  readonly hugePageSizes: readonly bigint[];
  /** Undefined: without the feature gate, and on cgroup v1. */
  readonly memoryQos?: MemoryQos | undefined;
}

/**
 * The limits of a pod's cgroup, including overhead. A resource is limited only if every container limits it: otherwise
 * the sum would also restrict containers without a limit.
 */
export function podCgroupResources(pod: Pod, settings: PodCgroupSettings): CgroupResources {
  const qos = qosClass(pod);
  const always = {
    ...(settings.podPidsLimit > 0 && { pidsLimit: settings.podPidsLimit }),
    ...hugePageLimits(pod, settings.hugePageSizes),
    ...(settings.memoryQos && podMemoryProtection(pod, settings.memoryQos)),
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

/** The pod's request for each page size of the machine: 0 if unset, because a missing limit means unlimited. */
function hugePageLimits(pod: Pod, sizes: readonly bigint[]): Pick<CgroupResources, "hugePageLimitBytes"> {
  if (sizes.length === 0) return {};
  const wanted = hugePageAmounts(podRequests(pod));
  return {
    hugePageLimitBytes: Object.fromEntries(sizes.map((size) => [formatPageSize(size), Number(wanted.get(size) ?? 0n)])),
  };
}
