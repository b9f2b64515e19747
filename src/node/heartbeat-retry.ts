import { ApiError, askedPauseMs } from "../api-client/api-error.ts";
import { DeadlineError } from "../base/deadline.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";

/** Delays before the second, third … attempt of a period. */
const pausesMs = [100, 200, 400, 800];
/** A broken connection says nothing about the server: the next one may work. */
const pausesOfConnectionsMs = [0, ...pausesMs.slice(0, -1)];

/**
 * How long to wait before a heartbeat is retried within its period; undefined: not before the next period, since the
 * server requests that, or would repeat its answer. A lease that is not renewed for four periods makes a node NotReady:
 * a server that answers only some requests must not cause that. Pure.
 * @param tries attempts so far in this period
 */
export function heartbeatRetryMs(error: unknown, tries: number): number | undefined {
  if (askedPauseMs(error) > 0) return undefined;
  if (error instanceof KubeConnectionError) return pausesOfConnectionsMs[tries - 1];
  const isPassing =
    error instanceof ApiError ? error.code === 429 || error.code >= 500 : error instanceof DeadlineError;
  return isPassing ? pausesMs[tries - 1] : undefined;
}
