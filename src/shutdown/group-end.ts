import type { Pod } from "../api/pod.ts";
import type { WakeableWait } from "../base/wakeable-wait.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Ending } from "../pods/ending.ts";
import type { PodKiller } from "../pods/pod-killer.ts";
import type { PodWorker } from "../pods/pod-worker.ts";
import { hasReleased, type WorkerState } from "../pods/worker-state.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { terminated, terminatedByShutdown } from "./ending.ts";
import { graceWithin, type ShutdownGroup } from "./periods.ts";

export interface GroupEndDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly killer: Pick<PodKiller, "kill">;
  /** Undefined: the pod has no worker. */
  readonly stateOf: (pod: Pod) => WorkerState | undefined;
  /** The worker of a pod that ends before this one starts under its UID. */
  readonly predecessorOf: (pod: Pod) => Pick<PodWorker, "terminate"> | undefined;
  /** Ends early when a pod has released its resources. */
  readonly wait: WakeableWait;
}

/**
 * Ends a group's pods, and waits until they have stopped and released their volumes, because volume drivers may be in
 * the next group. Waits no longer than the group's period.
 * @param elapsedMs how much of its period an earlier run has used
 */
export async function endGroup(
  deps: GroupEndDependencies,
  group: ShutdownGroup,
  elapsedMs: number,
  because: Cause,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, wait } = deps;
  const endMs = clock.monotonic() + group.graceSeconds * 1000 - elapsedMs;
  for (const pod of group.pods) kill(deps, pod, remainingSeconds(group, pod, elapsedMs), because);
  const left = (): readonly Pod[] => group.pods.filter((pod) => !hasReleased(deps.stateOf(pod)));
  while (left().length > 0 && clock.monotonic() < endMs && !signal.aborted) {
    await wait.for(endMs - clock.monotonic(), signal);
  }
  if (signal.aborted) return;
  const pods = left().map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
  const { priority, graceSeconds } = group;
  const fields = { priority, graceSeconds, pods: group.pods.length };
  if (pods.length === 0) log.info("all pods of the shutdown group have ended", fields);
  else log.warn("shutdown group timed out before its pods ended", { ...fields, left: pods });
  const outcome = pods.length === 0 ? "all have ended" : `${pods.length} have not ended within ${graceSeconds} s`;
  const message = `shutdown group of priority ${priority}: ${group.pods.length} pods, ${outcome}`;
  deps.journal.record({ kind: "note", what: "ShutdownGroupEnded", message, cause: because, data: { priority } });
}

/** Pods are killed when their group begins: an earlier run that began it has used their grace periods as well. */
function remainingSeconds(group: ShutdownGroup, pod: Pod, elapsedMs: number): number {
  return Math.max(0, graceWithin(group, pod) - Math.ceil(elapsedMs / 1000));
}

function kill(
  { journal, killer, stateOf, predecessorOf }: GroupEndDependencies,
  pod: Pod,
  graceSeconds: number,
  because: Cause,
): void {
  const state = stateOf(pod);
  if (state === undefined || hasReleased(state)) return;
  // A pod that is already stopping keeps its reason, but gets no more time than the group. One that returns under its UID
  // ends for the shutdown, before it starts.
  const isStopping = state.kind === "terminating";
  const predecessor = isStopping ? predecessorOf(pod) : undefined;
  if (isStopping) predecessor?.terminate({ ...state.ending, graceSeconds });
  const ending = isStopping && predecessor === undefined ? state.ending : newEnding();
  void killer.kill(pod, { ...ending, graceSeconds });

  function newEnding(): Ending {
    const { reason: what, message } = terminated;
    const entry = journal.record({ kind: "decision", what, message, pod: podRef(pod), cause: because });
    return terminatedByShutdown(pod, entry, because, graceSeconds);
  }
}
