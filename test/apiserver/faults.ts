import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "./api-error.ts";
import type { Exchange } from "./exchange.ts";
import type { RequestInfo } from "./request-info.ts";

/** What happens to a request. */
export interface Fault {
  /** It is answered this much later. */
  readonly latencyMs?: number;
  /** It is answered with an error: 429, 500, 503 … */
  readonly code?: number;
  /** For the `Retry-After` of that error. */
  readonly retryAfterSeconds?: number;
  /**
   * `reset`: the stream (HTTP/2) or the connection (HTTP/1.1) breaks before anything is done. `lose`: it is done, and then
   * breaks without an answer. `hang`: nothing happens until the client gives up.
   */
  readonly how?: "reset" | "lose" | "hang";
}

/** Which requests are meant: those of which all that is given is true. */
export interface FaultMatch {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection` */
  readonly verb?: string;
  /** The plural, as `pods`. */
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

/** Faults on purpose, request by request. What networks do is {@link Wire}'s. */
export class Faults {
  readonly #rules = new Set<Rule>();
  /** How many requests met a fault. */
  met = 0;

  /**
   * From now on requests that match meet a fault, the first rule that matches counting.
   * @param times how many requests do; then the rule is over
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
   * Does to a request what the rules say.
   * @returns whether the request shall be answered
   * @throws ApiError the answer, when that is the fault
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
