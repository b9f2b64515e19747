import { Emitter } from "../base/emitter.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { ApiDecodeError, ApiError, isExpired } from "./api-error.ts";

/** A server that drops the version so often in a row drops any version. */
const forgetfulProblems = 5;
const notOfOneWatch: ReadonlySet<number> = new Set([401, 408, 410, 429]);

/** What is watched, for the log. Told apart by identity. */
export interface Watched {
  /** `pods of this node`. */
  readonly name: string;
}

/**
 * The shared state of all watches of one API server. Logs once that it is unreachable and once that it is back, and
 * once for each watch that it rejects or answers undecodably, however many watches retry how often; single retries are
 * logged at debug level. The first success ends the pauses of the others.
 */
export class WatchNews {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Watches without an answer. */
  readonly #unanswered = new Set<Watched>();
  /** Watches that the server answers with a no, or with what can't be read. */
  readonly #refused = new Set<Watched>();
  readonly #pauses = new Map<Watched, WakeableWait>();
  readonly #restored = new Emitter();
  #sinceMs = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param problems tries in a row that did not end as they should, this one included */
  failed(watched: Watched, problem: unknown, problems: number, retryMs: number): void {
    const fields = { what: watched.name, error: errorMessage(problem), retryMs: Math.round(retryMs) };
    // One failure is what happens when a server restarts, and a place is forgotten when it was away for long.
    const few = isExpired(problem) ? forgetfulProblems : 2;
    if (problems < few) return this.#log.debug("watch closed", fields);
    const own = ofOneWatch(problem);
    const known = own === undefined ? this.#unanswered : this.#refused;
    const isNews = own === undefined ? known.size === 0 : !known.has(watched);
    if (isNews && known === this.#unanswered) this.#sinceMs = this.#clock.monotonic();
    known.add(watched);
    const message = own ?? "cannot list or watch at the API server";
    if (isNews) this.#log.warn(message, fields);
    else this.#log.debug(message, fields);
  }

  /** The server answers, and the watch has lived for a while since: streams that break at once are no way to keep up. */
  answered(watched: Watched): void {
    if (this.#refused.delete(watched)) this.#log.info("watch works again", { what: watched.name });
    if (!this.#unanswered.delete(watched)) return;
    for (const other of this.#unanswered) this.#pauses.get(other)?.wake();
    if (this.#unanswered.size > 0) return;
    const afterMs = Math.round(this.#clock.monotonic() - this.#sinceMs);
    this.#log.info("list and watch at the API server work again", { afterMs });
  }

  /**
   * The pause before the next try, unless another watch finds the server available. Never rejects.
   * @param pause.askedMs the pause that the server requested for this watch; others do not shorten it
   */
  async pause(
    watched: Watched,
    { delayMs, askedMs = 0 }: { readonly delayMs: number; readonly askedMs?: number },
    signal: AbortSignal,
  ): Promise<void> {
    const name = `retry of list and watch of the ${watched.name}`;
    if (askedMs > 0) await this.#clock.sleep(name, askedMs, signal).catch(() => {});
    if (delayMs <= askedMs || signal.aborted) return;
    const wait = new WakeableWait(this.#clock, name);
    this.#pauses.set(watched, wait);
    await wait.for(delayMs - askedMs, signal);
    this.#pauses.delete(watched);
  }

  /**
   * The server's store was reset to an earlier state, e.g. by a restore of etcd: a watch from a later revision would
   * receive nothing until that revision is reached again.
   */
  storeRestored(): void {
    this.#log.warn("API server was restored to an earlier state; relisting everything");
    this.#restored.emit();
  }

  onStoreRestored(listener: () => void): Disposable {
    return this.#restored.on(listener);
  }

  /** The watch is no longer needed. */
  ended(watched: Watched): void {
    this.#refused.delete(watched);
    this.#unanswered.delete(watched);
  }
}

/** How the server, which is well, answers this watch alone; undefined: what is wrong meets all watches. */
function ofOneWatch(problem: unknown): string | undefined {
  if (problem instanceof ApiDecodeError) return "cannot decode a response of the API server";
  return isRefusal(problem) ? "API server rejects a watch" : undefined;
}

/**
 * Whether the server is healthy and rejects only this watch. Too many requests (429) and timeouts (408) are no such
 * rejections. Nor is one without a Status, which a proxy sent, unknown credentials (401), or a dropped version (410):
 * these affect all watches.
 */
function isRefusal(problem: unknown): boolean {
  return (
    problem instanceof ApiError &&
    problem.reason !== "" &&
    problem.code >= 400 &&
    problem.code < 500 &&
    !notOfOneWatch.has(problem.code)
  );
}
