/** What goes wrong between the node and the API server, as probabilities for each request where nothing else is said. */
export interface ApiFaults {
  /** Requests, answers and events of watches take up to so long. */
  readonly apiDelayMaxMs: number;
  /** The server fails (5xx) and nothing happened. */
  readonly apiFails: number;
  /** It happened, but the answer is lost or says that it failed. */
  readonly apiLies: number;
  /** The server has too much to do (429) and asks for a pause. */
  readonly apiBusy: number;
  /** Others change an object all the while, and the server gives a patch up (409). */
  readonly apiConflicts: number;
  /** The server has forgotten the place of a watch or of a list (410). */
  readonly apiForgets: number;
  /** A list shows what was a while ago, though nothing older than this node was told before. */
  readonly apiStale: number;
  /** The connection breaks at an event of a watch, in the middle of its line. */
  readonly apiCuts: number;
  /** Connections are half dead: nothing comes and nothing fails, until the transport notices, or for ever. */
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
