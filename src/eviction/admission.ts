import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { tolerates } from "../pods/predicates.ts";
import type { Rejection } from "../pods/rejection.ts";
import { qosClass } from "../resources/qos.ts";
import type { Pressure } from "./pressure.ts";

const memoryPressureTaint = { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" };

/**
 * Rejects a pod under node pressure: any pod under disk or PID pressure, best-effort pods under memory pressure.
 * Critical pods are admitted. In upstream's words. Pure.
 */
export function admitUnderPressure(pod: Pod, pressures: readonly Pressure[]): Rejection | undefined {
  if (pressures.length === 0 || isCriticalPod(pod)) return undefined;
  if (pressures.every((pressure) => pressure === "MemoryPressure")) {
    if (qosClass(pod) !== "BestEffort") return undefined;
    if ((pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, memoryPressureTaint))) return undefined;
  }
  return { reason: "Evicted", message: `The node had condition: [${pressures.join(" ")}]. ` };
}
