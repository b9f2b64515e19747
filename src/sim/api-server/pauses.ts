import type { Clock } from "../../ports/clock.ts";
import type { KubeRequest } from "../../ports/kube-api.ts";

/** Kinds of objects for which each request of a lane has one sender, which knows how the last one ended. */
const judged = /\/(?:pods|nodes|leases)(?:$|[/?])/u;
/** The server hears a heartbeat, and everything else, after this time, however long a Retry-After. */
const longestHeartbeatMs = 10_000;
const longestMs = 60_000;

/** The requests of one incarnation that got a Retry-After, and until when. */
export class Pauses {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The server asked to delay the retry. */
  asked(request: KubeRequest, forMs: number): void {
    const longest = request.lane === "heartbeats" ? longestHeartbeatMs : longestMs;
    this.#untilMs.set(keyOf(request), this.#clock.monotonic() + Math.min(forMs, longest));
  }

  /** How much too early the request is, ms; 0: it is not. */
  restMs(request: KubeRequest): number {
    if (!judged.test(request.path)) return 0;
    return Math.max(0, (this.#untilMs.get(keyOf(request)) ?? 0) - this.#clock.monotonic());
  }
}

/** Requests are equal when they have the same content for the same pod: its name may have been reused. */
function keyOf({ lane, method, path, body = "" }: KubeRequest): string {
  const uid = /"uid":"([^"]*)"/u.exec(body)?.[1] ?? "";
  const who = method === "POST" ? body : uid;
  return `${lane} ${method} ${path.split("?")[0] ?? ""} ${who}`;
}
