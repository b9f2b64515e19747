import { onAbort } from "../base/abort.ts";
import { withDeadline } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";
import type { KubeLane, KubeRequest, KubeResponse, KubeTransport } from "../ports/kube-api.ts";
import { ApiDecodeError, apiErrorOf, parseAnswer } from "./api-error.ts";
import { RateLimiter } from "./rate-limiter.ts";
import {
  type ApiObject,
  type ObjectPlace,
  type Query,
  type Resource,
  isVersion,
  type ObjectVersion,
  resourcePath,
  withoutManagedFields,
} from "./resource.ts";

/** Requests a second and at once; 0 a second: no limit. */
export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export interface ApiClientLimits {
  /** kubeAPIQPS, kubeAPIBurst: all but heartbeats and events. */
  readonly requests: RateLimit;
  /** eventRecordQPS, eventBurst. */
  readonly events: RateLimit;
  /** Time limit of a heartbeat: the next one is due soon. */
  readonly heartbeatTimeoutMs: number;
}

export const patchTypes = {
  strategic: "application/strategic-merge-patch+json",
  merge: "application/merge-patch+json",
} as const;

/** A request whose response body is unused, or parsed by the caller. */
export interface PlainCall {
  readonly lane: KubeLane;
  readonly resource: Pick<Resource<ApiObject>, "base" | "plural">;
  readonly place: ObjectPlace;
  readonly query?: Query;
  readonly signal: AbortSignal;
}

/** A request; with a resource, the response contains its objects. */
export interface ApiCall<T extends ApiObject> extends PlainCall {
  readonly resource: Resource<T>;
}

/** Requests other than heartbeats. */
const requestTimeoutMs = 30_000;
const utf8 = new TextDecoder();
/** The longest answer: a page of a list, each object of which the server bounds to some MiB. */
const longestAnswerBytes = 256 * 1024 * 1024;

export interface ApiClientDependencies {
  readonly transport: KubeTransport;
  readonly clock: Clock;
  /** Told how long each request waited for its turn. */
  readonly waited?: (method: KubeRequest["method"], durationMs: number) => void;
}

/**
 * Requests to the API server, with the limits of the configuration. Statuses have priority over reads. Nothing is
 * retried here, as every caller does so itself: not before the server allows it (`askedPauseMs`), and without blocking
 * others, or one rejected pod would stop the node.
 */
export class ApiClient {
  readonly #transport: KubeTransport;
  readonly #clock: Clock;
  readonly #heartbeatTimeoutMs: number;
  readonly #waited: ApiClientDependencies["waited"];
  readonly #limiters: Readonly<Record<KubeLane, RateLimiter>>;

  constructor(deps: ApiClientDependencies, limits: ApiClientLimits) {
    const { clock, transport } = deps;
    this.#waited = deps.waited;
    this.#transport = transport;
    this.#clock = clock;
    this.#heartbeatTimeoutMs = limits.heartbeatTimeoutMs;
    const limiter = (name: string, { perSecond, burst }: RateLimit): RateLimiter =>
      new RateLimiter(clock, `the API server rate limit (${name})`, perSecond, burst);
    const requests = limiter("kubeAPIQPS", limits.requests);
    this.#limiters = {
      heartbeats: limiter("heartbeats", { perSecond: 0, burst: 0 }),
      status: requests,
      objects: requests,
      events: limiter("eventRecordQPS", limits.events),
    };
  }

  /** @throws ApiError, KubeConnectionError, ApiDecodeError, DeadlineError, or the signal's reason; so do the others */
  async get<T extends ApiObject>(call: ApiCall<T>): Promise<T> {
    return call.resource.decode(withoutManagedFields(await this.#json(call, "GET")));
  }

  /** The object; undefined: the server still has this version, which is not decoded again. */
  async getOther<T extends ApiObject>(call: ApiCall<T>, seen: ObjectVersion): Promise<T | undefined> {
    const value = await this.#json(call, "GET");
    return isVersion(value, seen) ? undefined : call.resource.decode(withoutManagedFields(value));
  }

  async create<T extends ApiObject>(call: ApiCall<T>, object: object): Promise<T> {
    return call.resource.decode(withoutManagedFields(await this.#json(call, "POST", JSON.stringify(object))));
  }

  async replace<T extends ApiObject>(call: ApiCall<T>, object: object): Promise<T> {
    return call.resource.decode(withoutManagedFields(await this.#json(call, "PUT", JSON.stringify(object))));
  }

  async patch<T extends ApiObject>(call: ApiCall<T>, type: keyof typeof patchTypes, patch: object): Promise<T> {
    const value = await this.#json(call, "PATCH", JSON.stringify(patch), patchTypes[type]);
    return call.resource.decode(withoutManagedFields(value));
  }

  /** @param options metav1.DeleteOptions */
  async delete(call: PlainCall, options: object): Promise<void> {
    await this.#json(call, "DELETE", JSON.stringify(options));
  }

  /**
   * One page of a collection, or all of it, undecoded: over a slow link there is no limit while data keeps arriving.
   */
  async list(call: PlainCall): Promise<unknown> {
    const request = this.#request(call, "GET", undefined, undefined);
    const what = describe(request);
    await this.#turn(call, "GET", "later");
    return await withDeadline(this.#clock, what, requestTimeoutMs, call.signal, async (deadline, goesOn) => {
      return await this.#answer(what, { ...request, signal: deadline }, goesOn);
    });
  }

  /** A watch: the answer's body as it comes, until the call's signal aborts. Only its beginning has a deadline. */
  async watch(call: PlainCall): Promise<AsyncIterable<Uint8Array>> {
    const request = this.#request(call, "GET", undefined, undefined);
    const what = describe(request);
    await this.#turn(call, request.method, "later");
    const controller = new AbortController();
    // For as long as the stream lives; its signal is its caller's own, so that no listener needs removal.
    onAbort(call.signal, () => controller.abort(call.signal.reason));
    const response = await withDeadline(this.#clock, what, requestTimeoutMs, call.signal, async (deadline) => {
      // Until the head has arrived; then the stream lives as long as the caller wants.
      using _deadline = onAbort(deadline, () => controller.abort(deadline.reason));
      return await this.#transport.send({ ...request, signal: controller.signal });
    });
    if (isFailure(response)) {
      throw await withDeadline(this.#clock, what, requestTimeoutMs, call.signal, () => failureOf(what, response));
    }
    const type = response.headers["content-type"];
    if (type !== undefined && !/\bjson\b/iu.test(type)) {
      const problem = apiErrorOf(what, response, undefined);
      controller.abort(problem);
      throw problem;
    }
    return response.body;
  }

  async #json(call: PlainCall, method: KubeRequest["method"], body?: string, contentType?: string): Promise<unknown> {
    const { lane, signal } = call;
    const request = this.#request(call, method, body, contentType);
    const what = describe(request);
    await this.#turn(call, method, lane === "status" ? "first" : "later");
    const limitMs = lane === "heartbeats" ? this.#heartbeatTimeoutMs : requestTimeoutMs;
    return await withDeadline(this.#clock, what, limitMs, signal, async (deadline) => {
      return await this.#answer(what, { ...request, signal: deadline });
    });
  }

  /** @param goesOn called for each received piece */
  async #answer(what: string, request: KubeRequest, goesOn?: () => void): Promise<unknown> {
    const response = await this.#transport.send(request);
    if (isFailure(response)) throw await failureOf(what, response);
    return parseAnswer(what, await readText(what, response, goesOn), response);
  }

  async #turn({ lane, signal }: PlainCall, method: KubeRequest["method"], turn: "first" | "later"): Promise<void> {
    const beganMs = this.#clock.monotonic();
    await this.#limiters[lane].acquire(signal, turn);
    this.#waited?.(method, this.#clock.monotonic() - beganMs);
  }

  #request(
    { lane, resource, place, query, signal }: PlainCall,
    method: KubeRequest["method"],
    body: string | undefined,
    contentType = "application/json",
  ): KubeRequest {
    return {
      lane,
      method,
      path: resourcePath(resource, place, query),
      headers: { accept: "application/json", ...(body !== undefined && { "content-type": contentType }) },
      ...(body !== undefined && { body }),
      signal,
    };
  }
}

/** The API server never redirects: a proxy before it does. */
function isFailure({ status }: KubeResponse): boolean {
  return status >= 300;
}

async function failureOf(what: string, response: KubeResponse): Promise<Error> {
  const text = await readText(what, response);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  return apiErrorOf(what, response, body);
}

/** `PATCH /api/v1/…`, without the query. */
function describe({ method, path }: KubeRequest): string {
  return `${method} ${path.split("?")[0] ?? ""}`;
}

async function readText(what: string, { body }: KubeResponse, goesOn?: () => void): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    goesOn?.();
    length += piece.length;
    if (length > longestAnswerBytes) {
      throw new ApiDecodeError(`${what}: the response is longer than ${longestAnswerBytes} bytes`);
    }
    pieces.push(piece);
  }
  const [first] = pieces;
  return utf8.decode(pieces.length === 1 ? first : Buffer.concat(pieces, length));
}
