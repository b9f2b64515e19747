import { DeadlineError } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";
import { isCriError } from "../ports/cri.ts";
import type { Pleg } from "../pleg/pleg.ts";

/** Minimum pause between checks of a runtime that lists but fails other calls. */
const askAgainMs = 10_000;

/**
 * Whether a pod's work failed because the runtime was away, so a retry is worthwhile once it answers: the normal
 * back-off is for repeatable failures.
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
    // It may be back before a relist finds it away.
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

/** Whether the runtime was unavailable or too slow; undefined: it answered, or the error is unrelated. */
export function outageOf(error: unknown): "away" | "silent" | undefined {
  for (let link = error; link instanceof Error && link.cause !== link; link = link.cause) {
    if (isCriError(link, "Unavailable")) return "away";
    if (isCriError(link, "DeadlineExceeded") || link instanceof DeadlineError) return "silent";
    if (link instanceof AggregateError) return link.errors.map(outageOf).find((kind) => kind !== undefined);
  }
  return undefined;
}
