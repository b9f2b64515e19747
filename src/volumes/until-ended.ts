import { DeadlineError, withDeadline } from "../base/deadline.ts";
import type { Semaphore } from "../base/semaphore.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";

/** How long the stop of podwright waits for work on volumes that it has canceled. */
const limitMs = 5_000;

/**
 * Waits for canceled work on volumes, which would otherwise write files or the journal after the end of podwright. What
 * does not end is left: it must not delay the stop.
 * @param setUps of each pod; held by what was canceled before, too
 */
export async function untilEnded(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  upkeeps: Promise<void>,
  setUps: readonly Semaphore[],
): Promise<void> {
  const ended = async (turn: Semaphore, signal: AbortSignal): Promise<void> => {
    using _ended = await turn.acquire(signal);
  };
  try {
    await withDeadline(clock, "the work on volumes to end", limitMs, undefined, async (signal) => {
      await Promise.all([upkeeps, ...setUps.map((turn) => ended(turn, signal))]);
    });
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    log.warn("work on volumes has not ended", { error: error.message });
  }
}
