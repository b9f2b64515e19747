import { ApiError, askedPauseMs } from "../api-client/api-error.ts";
import { DeadlineError } from "../base/deadline.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";

/** Before the second, third … try of a period. */
const pausesMs = [100, 200, 400, 800];
/** A connection that broke says nothing of the server: the next one may be good. */
const pausesOfConnectionsMs = [0, ...pausesMs.slice(0, -1)];

/**
 * How long to wait before a heartbeat is tried again within its period; undefined: it has to wait for the next one, as the
 * server asks for that, or would say the same again. A lease that is not renewed for four periods makes a node NotReady:
 * a server that answers only some requests must not do that. Pure.
 * @param tries made so far in this period
 */
export function heartbeatRetryMs(error: unknown, tries: number): number | undefined {
  if (askedPauseMs(error) > 0) return undefined;
  if (error instanceof KubeConnectionError) return pausesOfConnectionsMs[tries - 1];
  const isPassing =
    error instanceof ApiError ? error.code === 429 || error.code >= 500 : error instanceof DeadlineError;
  return isPassing ? pausesMs[tries - 1] : undefined;
}
