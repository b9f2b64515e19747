import { ApiError } from "../api-client/api-error.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { LogFields, Logger } from "../ports/log.ts";

/** Whose status it is, for the log. */
export interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * What the log says of statuses on their way: once that they don't reach the API server and once that all do again,
 * however many pods try how often, and once of each pod that the server refuses. The rest is told for debugging.
 */
export class StatusNews {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** UIDs of pods of which nobody took the status. */
  readonly #failing = new Set<string>();
  /** UIDs of pods to whose status, or removal, the server says no. */
  readonly #refused = new Set<string>();
  /** Monotonic ms; undefined: that statuses don't arrive is not told. */
  #sinceMs: number | undefined;
  /** Pods that have failed since. */
  #pods = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** It is tried again. */
  failed(pod: Named, error: unknown, retryMs: number): void {
    const { namespace, name, uid } = pod;
    const fields = { namespace, name, error: errorMessage(error), retryMs };
    if (isRefusal(error)) return this.#refuse(pod, "API server rejects a pod's status update", fields);
    if (!this.#failing.has(uid)) this.#pods++;
    this.#failing.add(uid);
    if (this.#sinceMs !== undefined) return this.#log.debug("retry of pod status update failed", fields);
    this.#sinceMs = this.#clock.monotonic();
    this.#log.warn("cannot update a pod's status", fields);
  }

  /** The server finds it wrong; it is tried again all the same. */
  invalid(pod: Named, error: unknown, retryMs: number): void {
    const { namespace, name } = pod;
    const fields = { namespace, name, error: errorMessage(error), retryMs };
    this.#refuse(pod, "API server finds a pod's status invalid", fields);
  }

  arrived({ namespace, name, uid }: Named): void {
    if (this.#refused.delete(uid)) this.#log.info("API server accepts a pod's status again", { namespace, name });
    this.#failing.delete(uid);
    if (this.#sinceMs === undefined || this.#failing.size > 0) return;
    const afterMs = Math.round(this.#clock.monotonic() - this.#sinceMs);
    this.#log.info("pod status updates work again", { pods: this.#pods, afterMs });
    this.#sinceMs = undefined;
    this.#pods = 0;
  }

  /** The server does not have the pod, or not any more: there is nothing to tell of it. */
  ended(uid: string): void {
    this.#refused.delete(uid);
    this.#failing.delete(uid);
  }

  #refuse({ uid }: Named, message: string, fields: LogFields): void {
    // It was answered.
    this.#failing.delete(uid);
    if (this.#refused.has(uid)) this.#log.debug(message, fields);
    else this.#log.warn(message, fields);
    this.#refused.add(uid);
  }
}

/** Whether the server is well, and says no to this pod alone. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code >= 400 && error.code < 500 && error.code !== 408 && error.code !== 429;
}
