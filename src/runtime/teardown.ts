import type { Turn } from "../base/semaphore.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import type { RuntimeDependencies } from "./dependencies.ts";

type Dependencies = Pick<RuntimeDependencies, "clock" | "teardowns">;

/** What takes longer, as its network plugin hangs, keeps no other pod from being stopped. */
const patienceMs = 2000;
/** After this a removal goes on without a place, however much is to be stopped: a pod of the same name may wait for it. */
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
  using place = await (turn === "first" ? teardowns.acquire(signal, turn) : placeSoon(deps, signal));
  using _patience = clock.timer("a pod that is slow to be taken down", patienceMs, () => place?.[Symbol.dispose]());
  return await work(clock.monotonic() - askedMs);
}

async function placeSoon({ clock, teardowns }: Dependencies, signal: AbortSignal): Promise<Disposable | undefined> {
  let taken: Promise<Disposable> | undefined;
  try {
    return await withDeadline(clock, "a place to remove a pod", removalWaitMs, signal, (limited) => {
      taken = teardowns.acquire(limited, "later");
      return taken;
    });
  } catch (error) {
    // It may have come in the very moment in which nobody waited for it any more.
    taken?.then(
      (place) => place[Symbol.dispose](),
      () => {},
    );
    if (error instanceof DeadlineError) return undefined;
    throw error;
  }
}
