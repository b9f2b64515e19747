import { settlesBefore } from "../base/settling.ts";
import type { Clock } from "../ports/clock.ts";
import type { MachineState } from "./machine-state.ts";
import { nearPeriodMs } from "./next-look.ts";
import { withoutDisks } from "./pressure.ts";

/** Work on a disk, which may hang. */
export interface DiskWork<T> {
  /** For diagnostics. */
  readonly wait: string;
  readonly work: Promise<T>;
  /** Observes the machine. */
  readonly look: (signal: AbortSignal) => Promise<MachineState>;
}

/**
 * Observes the machine each second while work on a disk goes on: a shortage of something else does not wait for it.
 * @returns urgent: the work goes on, and something else than a disk is short
 * @throws the work's error, or the signal's reason
 */
export async function besideLooks<T>(
  clock: Clock,
  { wait, work, look }: DiskWork<T>,
  signal: AbortSignal,
): Promise<{ readonly result: T } | { readonly urgent: MachineState }> {
  const ended = work.then((result) => ({ result }));
  // Nobody may be waiting when it fails.
  ended.catch(() => {});
  for (;;) {
    const outcome = await within(clock, wait, ended);
    signal.throwIfAborted();
    if (outcome !== undefined) return outcome;
    const seen = await look(signal).catch(() => undefined);
    signal.throwIfAborted();
    if (seen !== undefined && withoutDisks(seen.pressure).due.length > 0) return { urgent: seen };
  }
}

/** @returns undefined: it has not ended by then */
async function within<T>(clock: Clock, wait: string, work: Promise<T>): Promise<T | undefined> {
  const isOver = await settlesBefore(work, (late) => clock.timer(wait, nearPeriodMs, late));
  return isOver ? await work : undefined;
}
