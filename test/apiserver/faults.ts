import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "./api-error.ts";
import type { Exchange } from "./exchange.ts";
import type { RequestInfo } from "./request-info.ts";

/** A fault of a request. */
export interface Fault {
  /** Delays the response. */
  readonly latencyMs?: number;
  /** Status of an error response: 429, 500, 503 … */
  readonly code?: number;
  /** `Retry-After` of that error. */
  readonly retryAfterSeconds?: number;
  /**
   * `reset`: resets the stream (HTTP/2) or the connection (HTTP/1.1) before the request is carried out. `lose`: the
   * same afterwards, without a response. `hang`: nothing happens until the client gives up.
   */
  readonly how?: "reset" | "lose" | "hang";
}

/** Matches requests by all given properties. */
export interface FaultMatch {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection` */
  readonly verb?: string;
  /** The plural, such as `pods`. */
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly user?: string;
}

interface Rule {
  readonly match: FaultMatch;
  readonly fault: Fault;
  left: number;
}

function matches(match: FaultMatch, exchange: Exchange, info: RequestInfo | undefined): boolean {
  const { user, ...rest } = match;
  if (user !== undefined && user !== exchange.user.name) return false;
  return Object.entries(rest).every(([name, value]) => info?.[name as keyof RequestInfo] === value);
}

const reasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** Injected faults of requests; {@link Wire} has those of networks. */
export class Faults {
  readonly #rules = new Set<Rule>();
  /** The number of requests with a fault. */
  met = 0;

  /**
   * Adds a rule; the first matching rule applies to a request.
   * @param times number of requests until the rule ends
   * @returns ends the rule
   */
  add(match: FaultMatch, fault: Fault, times = Number.POSITIVE_INFINITY): Disposable {
    const rule: Rule = { match, fault, left: times };
    this.#rules.add(rule);
    return { [Symbol.dispose]: () => void this.#rules.delete(rule) };
  }

  clear(): void {
    this.#rules.clear();
  }

  /**
   * Applies the rules to a request.
   * @returns whether to respond to the request
   * @throws ApiError the injected error response
   */
  async meet(exchange: Exchange, info: RequestInfo | undefined): Promise<boolean> {
    const rule = [...this.#rules].find(({ match }) => matches(match, exchange, info));
    if (rule === undefined) return true;
    this.met++;
    if (--rule.left <= 0) this.#rules.delete(rule);
    const { latencyMs = 0, code, retryAfterSeconds, how } = rule.fault;
    if (latencyMs > 0) await sleep(latencyMs);
    if (how === "hang") return false;
    if (how === "reset") {
      exchange.reset();
      return false;
    }
    if (how === "lose") exchange.loseAnswer();
    if (code === undefined) return true;
    const options = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    throw new ApiError(code, reasons[code] ?? "InternalError", `fault injection: ${code}`, options);
  }
}
