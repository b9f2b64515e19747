import { isStaticPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { Ending } from "../pods/ending.ts";

/** Reason and message of pods that the node ends before it shuts down, as upstream has them. */
export const terminated = {
  reason: "Terminated",
  message: "Pod was terminated in response to imminent node shutdown.",
} as const;

/**
 * The node shuts down. Nobody starts the pod again but for a static one, which runs as soon as the machine does.
 * @param entry of the journal, that says so
 */
export function terminatedByShutdown(pod: Pod, entry: number, because: Cause, graceSeconds: number): Ending {
  const { reason: code, message } = terminated;
  return {
    cause: { code, message, entry, because },
    outcome: "failed",
    lasts: true,
    untilReboot: isStaticPod(pod),
    graceSeconds,
    disruption: message,
  };
}
