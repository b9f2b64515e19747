import { containersOf } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { ResourceSettings } from "./container-resources.ts";
import { parseList } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";
import { type Quantity, zeroQuantity } from "./quantity.ts";

export type SwapSettings = Pick<ResourceSettings, "swapCapacityBytes" | "swapAccounting" | "cgroupVersion">;

/**
 * Whether a container may use swap (KEP-2400, LimitedSwap): on cgroup v2, in a burstable pod that is not critical, with
 * a memory request below its limit.
 */
function usesSwap(pod: Pod, container: Container, settings: SwapSettings): boolean {
  const { swapCapacityBytes, swapAccounting, cgroupVersion } = settings;
  if (swapCapacityBytes === undefined || !swapAccounting || cgroupVersion === 1 || isCriticalPod(pod)) return false;
  const request = memoryOf(container, "requests");
  const limit = memoryOf(container, "limits");
  return qosClass(pod) === "Burstable" && !(request.isZero && limit.isZero) && request.compare(limit) !== 0;
}

/** A container's memory.swap.max: the machine's swap in proportion to its memory request, or 0. */
export function swapLimit(pod: Pod, container: Container, settings: ResourceSettings): bigint {
  if (!usesSwap(pod, container, settings)) return 0n;
  const { memoryCapacityBytes, swapCapacityBytes = 0n } = settings;
  const request = memoryOf(container, "requests").value();
  if (memoryCapacityBytes <= 0n || request > memoryCapacityBytes) return 0n;
  return (request * swapCapacityBytes) / memoryCapacityBytes;
}

function memoryOf(container: Container, kind: "requests" | "limits"): Quantity {
  return parseList(container.resources?.[kind]).get("memory") ?? zeroQuantity;
}

/** Whether a resize would change a running container's swap, which runtimes cannot do in place. */
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
