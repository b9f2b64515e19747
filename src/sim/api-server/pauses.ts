import type { Clock } from "../../ports/clock.ts";
import type { KubeRequest } from "../../ports/kube-api.ts";

/** Kinds of objects of which each request has one asker, who knows how the last one ended. */
const judged = /\/(?:pods|nodes|leases)(?:$|[/?])/u;
/** However long the server asks for, it hears of the node, and of all else, by then. */
const longestHeartbeatMs = 10_000;
const longestMs = 60_000;

/** Which requests of one incarnation of the node the server asked to wait, and until when. */
export class Pauses {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The node was asked to wait with another try. */
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

/** Requests are the same when they say the same of the same pod: one of its name may be there by then. */
function keyOf({ method, path, body = "" }: KubeRequest): string {
  const uid = /"uid":"([^"]*)"/u.exec(body)?.[1] ?? "";
  const who = method === "POST" ? body : uid;
  return `${method} ${path.split("?")[0] ?? ""} ${who}`;
}
