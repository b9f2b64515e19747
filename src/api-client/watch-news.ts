import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { ApiError, isExpired } from "./api-error.ts";

/** What is watched, for the log. Told apart by identity. */
export interface Watched {
  /** `pods of this node`. */
  readonly name: string;
}

/**
 * What the log says of all watches of one API server: one line when it can't be kept up with, one when it can again, and
 * one for each watch that it refuses, however many watches try how often. The single tries are told for debugging.
 */
export class WatchNews {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Watches that nobody answers. */
  readonly #unanswered = new Set<Watched>();
  /** Watches that the server answers with a no. */
  readonly #refused = new Set<Watched>();
  #sinceMs = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param problems tries in a row that did not end as they should, this one included */
  failed(watched: Watched, problem: unknown, problems: number, retryMs: number): void {
    const fields = { what: watched.name, error: errorMessage(problem), retryMs: Math.round(retryMs) };
    // One failure is what happens when a server restarts, and a place is forgotten when it was away for long.
    if (problems < 2 || isExpired(problem)) return this.#log.debug("a watch of the API server broke", fields);
    const known = isRefusal(problem) ? this.#refused : this.#unanswered;
    const isNews = isRefusal(problem) ? !known.has(watched) : known.size === 0;
    if (isNews && known === this.#unanswered) this.#sinceMs = this.#clock.monotonic();
    known.add(watched);
    const message = isRefusal(problem) ? "the API server refuses a watch" : "can't keep up with the API server";
    if (isNews) this.#log.warn(message, fields);
    else this.#log.debug(message, fields);
  }

  /** The server began to answer. */
  answered(watched: Watched): void {
    if (this.#refused.delete(watched)) this.#log.info("the API server grants the watch again", { what: watched.name });
    if (!this.#unanswered.delete(watched) || this.#unanswered.size > 0) return;
    const afterMs = Math.round(this.#clock.monotonic() - this.#sinceMs);
    this.#log.info("keeps up with the API server again", { afterMs });
  }

  /** Nobody wants the watch any more. */
  ended(watched: Watched): void {
    this.#refused.delete(watched);
    this.#unanswered.delete(watched);
  }
}

/** Whether the server is well, and says no to this watch alone. Too many requests (429) and timeouts (408) are no such answers. */
function isRefusal(problem: unknown): boolean {
  return problem instanceof ApiError && problem.code < 500 && problem.code !== 408 && problem.code !== 429;
}
