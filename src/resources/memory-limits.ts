import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { LinuxResources } from "./container-edits.ts";
import { limitOrPodLevel, oomGroup, type ResourceSettings } from "./container-resources.ts";
import { formatPageSize, hugePageAmounts } from "./huge-pages.ts";
import { containerMemoryQos } from "./memory-qos.ts";
import { parseList, type Quantities } from "./pod-totals.ts";
import { hasPodLevelResources } from "./qos.ts";
import type { ResourceManager } from "./resource-manager.ts";
import { swapLimit } from "./swap.ts";

/** The node's memory settings for every container: huge pages, swap, and OOM groups. */
export function memoryLimits(settings: ResourceSettings): ResourceManager {
  return {
    name: "memory limits",
    edits: (pod, container) => {
      const limits = parseList(container.resources?.limits);
      const hugepageLimits = hugePageLimits(pod, limits, settings.hugePageSizes);
      return {
        resources: {
          hugepageLimits,
          unified: {
            ...oomGroup(settings),
            ...memoryQosOf(pod, container, settings),
            ...swapLimits(pod, container, settings),
          },
          ...memoryAndSwap(pod, limits, settings),
        },
      };
    },
  };
}

function memoryQosOf(pod: Pod, container: Container, { memoryQos }: ResourceSettings): Record<string, string> {
  return memoryQos === undefined ? {} : containerMemoryQos(pod, container, memoryQos);
}

/** On v1 memory and swap share a limit. */
function memoryAndSwap(pod: Pod, limits: Quantities, settings: ResourceSettings): LinuxResources {
  if (!settings.swapAccounting || settings.cgroupVersion === 2) return {};
  return { memorySwapLimitInBytes: limitOrPodLevel(pod, limits, "memory").value() };
}

/** On v2 swap has its own limit. */
function swapLimits(pod: Pod, container: Container, settings: ResourceSettings): Record<string, string> {
  if (!settings.swapAccounting || settings.cgroupVersion === 1) return {};
  return { "memory.swap.max": String(swapLimit(pod, container, settings)) };
}

/** A limit for every page size of the machine, 0 by default: otherwise it would be unlimited. */
function hugePageLimits(
  pod: Pod,
  limits: Quantities,
  pageSizes: readonly bigint[],
): { pageSize: string; limit: bigint }[] {
  const podLevel = hasPodLevelResources(pod) ? parseList(pod.spec.resources?.limits) : [];
  const wanted = hugePageAmounts([...podLevel, ...limits]);
  return pageSizes.map((size) => ({ pageSize: formatPageSize(size), limit: wanted.get(size) ?? 0n }));
}
