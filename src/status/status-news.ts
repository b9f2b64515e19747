import { ApiError } from "../api-client/api-error.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type { LogFields, Logger } from "../ports/log.ts";

/** The pod, for the log. */
export interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly uid: PodUid;
}

/**
 * Logs the fate of status updates: once that they fail and once that all work again, however many pods retry how often,
 * and once for each pod that the server rejects. The rest is logged at debug level.
 */
export class StatusNews {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** UIDs of pods whose status update failed. */
  readonly #failing = new Set<string>();
  /** UIDs of pods whose status or deletion the server rejects. */
  readonly #refused = new Set<string>();
  /** Monotonic ms; undefined: no failure is logged. */
  #sinceMs: number | undefined;
  /** Pods that have failed since. */
  #pods = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** A retry follows. */
  failed(pod: Named, error: unknown, retryMs: number): void {
    const { namespace, name, uid } = pod;
    const fields = { namespace, name, error: errorMessage(error), retryMs };
    if (isRefusal(error)) return this.#refuse(pod, "API server rejects a pod's status update or deletion", fields);
    if (!this.#failing.has(uid)) this.#pods++;
    this.#failing.add(uid);
    if (this.#sinceMs !== undefined) return this.#log.debug("retry of a pod's status or deletion failed", fields);
    this.#sinceMs = this.#clock.monotonic();
    this.#log.warn("cannot send a pod's status or deletion", fields);
  }

  /** The server finds it invalid; it is retried nevertheless. */
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

  /** The server does not have the pod: nothing to update. */
  ended(uid: PodUid): void {
    this.#refused.delete(uid);
    this.#failing.delete(uid);
  }

  #refuse({ uid }: Named, message: string, fields: LogFields): void {
    // The server answered.
    this.#failing.delete(uid);
    if (this.#refused.has(uid)) this.#log.debug(message, fields);
    else this.#log.warn(message, fields);
    this.#refused.add(uid);
  }
}

/** Whether the server is healthy and rejects only this pod. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code >= 400 && error.code < 500 && error.code !== 408 && error.code !== 429;
}
