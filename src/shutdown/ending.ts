import { isStaticPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { Ending } from "../pods/ending.ts";

/** Upstream's reason and message of pods that a node shutdown ends. */
export const terminated = {
  reason: "Terminated",
  message: "Pod was terminated in response to imminent node shutdown.",
} as const;

/**
 * The node shuts down. Only static pods start again, after the reboot.
 * @param entry the journal entry of the shutdown
 */
export function terminatedByShutdown(pod: Pod, entry: number, because: Cause, graceSeconds: number): Ending {
  const { reason: code, message } = terminated;
  return {
    cause: { code, message, entry, because },
    outcome: "cutShort",
    lasts: true,
    untilReboot: isStaticPod(pod),
    graceSeconds,
    disruption: message,
  };
}
