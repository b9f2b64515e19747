import type { Turn } from "../../base/waiting-line.ts";
import { DeadlineError, withDeadline } from "../../base/deadline.ts";
import type { RuntimeDependencies } from "../dependencies.ts";

type Dependencies = Pick<RuntimeDependencies, "clock" | "teardowns">;

/** After this a removal waits in turn with the stops, however many come: a pod of the same name may wait for it. */
const removalWaitMs = 5000;

/**
 * Does one part of taking a pod down when it has a place for that: all at once would all be done at the end, and none
 * sooner. Stops go first, as others may be waiting for the pod to be gone; what is removed then may wait a little.
 * @param work gets for how many milliseconds it waited
 * @throws the signal's reason when it aborts before there is a place
 */
export async function inTeardown<T>(
  deps: Dependencies,
  turn: Turn,
  signal: AbortSignal,
  work: (queuedMs: number) => Promise<T>,
): Promise<T> {
  const { clock, teardowns } = deps;
  const askedMs = clock.monotonic();
  using _place = await (turn === "first" ? teardowns.take(turn, signal) : placeInTime(deps, signal));
  return await work(clock.monotonic() - askedMs);
}

async function placeInTime({ clock, teardowns }: Dependencies, signal: AbortSignal): Promise<Disposable> {
  let taken: Promise<Disposable> | undefined;
  try {
    return await withDeadline(clock, "a place to remove a pod", removalWaitMs, signal, (limited) => {
      taken = teardowns.take("later", limited);
      return taken;
    });
  } catch (error) {
    // It may have come in the very moment in which nobody waited for it any more.
    taken?.then(
      (place) => place[Symbol.dispose](),
      () => {},
    );
    if (!(error instanceof DeadlineError)) throw error;
  }
  return await teardowns.take("first", signal);
}
