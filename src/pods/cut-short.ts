import type { Pod } from "../api/pod.ts";
import { restartsAfter } from "../api/restart-policy.ts";
import { findContainer, type PodStatus } from "../runtime/status/pod-status.ts";
import type { Ending } from "./ending.ts";

/**
 * How a pod ends that is ended now. As upstream, a container that waits for its restart has not succeeded, whatever its
 * last exit code: a pod that is cut short meanwhile has failed. Pure.
 * @param waiting why containers wait, by name
 */
export function endingNow(
  asked: Ending,
  pod: Pod | undefined,
  status: PodStatus,
  waiting: ReadonlyMap<string, unknown>,
): Ending {
  if (asked.outcome !== "cutShort" || pod === undefined) return asked;
  const awaitsRestart = pod.spec.containers.some((container) => {
    const last = findContainer(status, container.name);
    return waiting.has(container.name) && last?.state === "exited" && restartsAfter(pod, container, last.exitCode);
  });
  return awaitsRestart ? { ...asked, outcome: "failed" } : asked;
}
