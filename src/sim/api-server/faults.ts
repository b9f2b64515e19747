/** Faults between the node and the API server; probabilities for each request unless stated otherwise. */
export interface ApiFaults {
  /** Maximum delay of requests, responses and watch events. */
  readonly apiDelayMaxMs: number;
  /** The server fails (5xx) without an effect. */
  readonly apiFails: number;
  /** The request has its effect, but the response is lost or reports a failure. */
  readonly apiLies: number;
  /** The server is overloaded (429) and sends Retry-After. */
  readonly apiBusy: number;
  /** Others keep changing the object, and the server gives up a patch (409). */
  readonly apiConflicts: number;
  /** The server has compacted the version of a watch or list (410). */
  readonly apiForgets: number;
  /** A list is outdated, though not older than what this node has seen. */
  readonly apiStale: number;
  /** The connection breaks in the middle of a watch event. */
  readonly apiCuts: number;
  /** Connections are half dead: nothing arrives and nothing fails, until the transport notices, or forever. */
  readonly apiHalfDead: "no" | "noticed" | "unnoticed";
}

export const soundApi: ApiFaults = {
  apiDelayMaxMs: 4,
  apiFails: 0,
  apiLies: 0,
  apiBusy: 0,
  apiConflicts: 0,
  apiForgets: 0,
  apiStale: 0,
  apiCuts: 0,
  apiHalfDead: "no",
};
