import { DeadlineError } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";
import { isCriError } from "../ports/cri.ts";
import type { Pleg } from "../pleg/pleg.ts";

/** So long a runtime that is there for listings and away for the rest is not asked again for its return. */
const askAgainMs = 10_000;

/**
 * Whether one pod's work failed for want of the runtime, and is worth another try as soon as that answers again: its own
 * back-off is for what may fail again.
 */
export class RuntimeOutage {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #pleg: Pick<Pleg, "awaitAnswer">;
  #waits = false;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "monotonic">, pleg: Pick<Pleg, "awaitAnswer">) {
    this.#clock = clock;
    this.#pleg = pleg;
  }

  /** Something failed. */
  failed(error: unknown): void {
    const kind = outageOf(error);
    if (kind === undefined) return;
    this.#waits = true;
    const nowMs = this.#clock.monotonic();
    // It may be back before a listing finds it away.
    if (kind !== "away" || nowMs < this.#askedMs + askAgainMs) return;
    this.#askedMs = nowMs;
    this.#pleg.awaitAnswer();
  }

  /** The runtime answers: true when something waits for that. */
  over(): boolean {
    const waits = this.#waits;
    this.#waits = false;
    return waits;
  }
}

/** Whether the runtime was not there, or did not answer in time; undefined: it answered, or this has nothing to do with it. */
export function outageOf(error: unknown): "away" | "silent" | undefined {
  for (let link = error; link instanceof Error && link.cause !== link; link = link.cause) {
    if (isCriError(link, "Unavailable")) return "away";
    if (isCriError(link, "DeadlineExceeded") || link instanceof DeadlineError) return "silent";
    if (link instanceof AggregateError) return link.errors.map(outageOf).find((kind) => kind !== undefined);
  }
  return undefined;
}
