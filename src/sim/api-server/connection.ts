import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../ports/clock.ts";
import { KubeConnectionError, type KubeRequest, type KubeResponse, type KubeTransport } from "../../ports/kube-api.ts";
import type { SimRandom } from "../random.ts";
import { Body } from "./body.ts";
import type { ApiFaults } from "./faults.ts";
import { Pauses } from "./pauses.ts";
import { type ApiCallParts, describeCall, parseRequest } from "./request.ts";
import { type Answer, refused, type SimApiServer } from "./server.ts";
import { Refusal, tooOld } from "./values.ts";
import { WatchLines } from "./watch-lines.ts";

export interface ConnectionSettings {
  readonly server: SimApiServer;
  /** The incarnation's: a dead one gets no responses. */
  readonly clock: Clock;
  readonly random: SimRandom;
  readonly faults: () => ApiFaults;
  /** Called with each request before its effect and before its response; false ends the caller there. */
  readonly onStep: () => boolean;
  readonly onFault: (kind: string) => void;
  readonly onRequest: (what: string) => void;
  /** The newest version that this node has seen, in all of its runs. */
  readonly seen: { version: number };
}

/** Time until the real transport notices a half-dead connection. */
const noticeMs = 9000;
/** Time until connecting to an absent server fails. */
const connectMs = 10_000;

/** A request, or a watch, in progress. */
interface Exchange {
  readonly request: KubeRequest;
  readonly call: ApiCallParts | undefined;
  readonly fail: (error: Error) => void;
  readonly answer: (response: KubeResponse) => void;
  /** Breaks the body of a watch, once it has begun. */
  cut: (error: Error) => void;
  /** Its connection is half dead. */
  stuck: boolean;
  timer: Disposable | undefined;
}

/** The connection of one incarnation of the node to the API server, with faults. */
export class SimKubeConnection implements KubeTransport {
  readonly #settings: ConnectionSettings;
  readonly #open = new Set<Exchange>();
  readonly #pauses: Pauses;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#pauses = new Pauses(settings.clock);
  }

  /** Faults have begun or ended: exchanges on half-dead connections get stuck, permanently. */
  faultsChanged(): void {
    if (this.#settings.faults().apiHalfDead === "no") return;
    for (const exchange of this.#open) this.#stick(exchange);
  }

  async send(request: KubeRequest): Promise<KubeResponse> {
    const { server, faults, onRequest } = this.#settings;
    request.signal.throwIfAborted();
    const call = partsOf(request);
    onRequest(`API ${call === undefined ? request.path : describeCall(call)}`);
    const rest = this.#pauses.restMs(request);
    if (rest > 0) server.hasty(`${request.method} ${request.path}, ${rest / 1000} s before its time`);
    const { promise, resolve, reject } = Promise.withResolvers<KubeResponse>();
    const exchange: Exchange = {
      ...{ request, call, fail: reject, cut: reject, answer: resolve },
      ...{ stuck: false, timer: undefined },
    };
    this.#open.add(exchange);
    if (faults().apiHalfDead !== "no") this.#stick(exchange);
    using _abort = onAbort(request.signal, () => reject(request.signal.reason));
    using _down = server.onDown(() => reject(ended()));
    // A request canceled before its arrival has no effect.
    using _timer = this.#travel(() => this.#arrived(exchange));
    try {
      return await promise;
    } finally {
      if (exchange.cut === reject) this.#close(exchange);
    }
  }

  #arrived(exchange: Exchange): void {
    const { server, random, clock, onStep, onFault } = this.#settings;
    const { request, call, fail } = exchange;
    const isWatch = call?.query.get("watch") === "true";
    // Data sent over a half-dead connection may arrive.
    if (!onStep() || (exchange.stuck && (isWatch || random.chance(0.5)))) return;
    if (server.down !== undefined) {
      const refuses = server.down === "refuses";
      onFault(refuses ? "API server down" : "API server out of reach");
      const problem = `the simulated API server ${refuses ? "refuses connections" : "does not answer"}`;
      clock.timer("a connection to the API server", refuses ? 0 : connectMs, () =>
        fail(new KubeConnectionError(problem)),
      );
      return;
    }
    const failure = this.#drawFailure(request.method);
    if (failure instanceof Refusal) return this.#answer(exchange, refused(failure));
    if (call !== undefined && isWatch) return this.#watch(call, exchange);
    const answer = server.serve(request, this.#staleVersion(call));
    if (!onStep()) return;
    if (failure === "lost") return void this.#travel(() => fail(new KubeConnectionError("the answer was lost")));
    const timedOut = new Refusal(504, "Timeout", "the simulated API server did not receive it in time");
    this.#answer(exchange, failure === "denied" ? refused(timedOut) : answer);
  }

  /** The fault of a request; undefined: none. */
  #drawFailure(method: KubeRequest["method"]): Refusal | "lost" | "denied" | undefined {
    const { random, faults, onFault } = this.#settings;
    const { apiFails, apiLies, apiBusy, apiConflicts } = faults();
    if ((method === "PATCH" || method === "DELETE") && random.chance(apiConflicts)) {
      onFault("API conflict");
      return new Refusal(409, "Conflict", "Operation cannot be fulfilled: the object has been modified");
    }
    const draw = random.uniform();
    if (draw < apiFails) {
      onFault("API fails");
      const code = random.pick([500, 503, 504]);
      const seconds = random.chance(0.2) ? 1 : undefined;
      return new Refusal(code, code === 500 ? "InternalError" : "ServiceUnavailable", `a simulated ${code}`, seconds);
    }
    if (draw < apiFails + apiBusy) {
      onFault("API throttles");
      return new Refusal(429, "TooManyRequests", "the simulated API server is busy", random.integer(1, 5));
    }
    if (method === "GET" || draw >= apiFails + apiBusy + apiLies) return undefined;
    onFault("API done but reported failed");
    return random.pick(["lost", "denied"]);
  }

  /** The version of a list's response; undefined: the newest. */
  #staleVersion(call: ApiCallParts | undefined): number | undefined {
    const { server, random, faults, onFault, seen } = this.#settings;
    const { apiStale } = faults();
    if (apiStale === 0 || call?.method !== "GET" || call.name !== undefined) return undefined;
    const { version, oldest } = server.registry.store;
    const from = Math.max(seen.version, oldest);
    if (seen.version === 0 || from >= version || !random.chance(apiStale)) return undefined;
    onFault("API list stale");
    return random.integer(from, version - 1);
  }

  #answer(exchange: Exchange, { code, body, headers }: Answer): void {
    this.#travel(() => {
      if (exchange.stuck || !this.#settings.onStep()) return;
      const content = new Body(() => {});
      content.push(body);
      content.end();
      if (body.startsWith('{"kind":"List"')) this.#delivered(Number(/"resourceVersion":"(\d+)"/u.exec(body)?.[1]));
      const seconds = Number(headers["retry-after"] ?? 0);
      // A client that canceled or lost its connection does not see the Retry-After.
      if (seconds > 0 && this.#open.has(exchange)) this.#pauses.asked(exchange.request, seconds * 1000);
      exchange.answer({ status: code, headers, body: content });
    });
  }

  #watch(call: ApiCallParts, exchange: Exchange): void {
    const { server, clock, random, faults, onStep, onFault } = this.#settings;
    const { signal } = exchange.request;
    const undo = new DisposableStack();
    const body = new Body(() => undo.dispose());
    const cut = (error: Error): void => {
      undo.dispose();
      body.fail(error);
    };
    const cuts = (): boolean => {
      const breaks = random.chance(faults().apiCuts);
      if (breaks) onFault("API watch cut");
      return breaks;
    };
    const isAlive = (): boolean => !exchange.stuck && onStep();
    const [delayMs, onTold] = [() => this.#delayMs(), (version: number) => this.#delivered(version)];
    const lines = new WatchLines({ clock, delayMs, cuts, isAlive, onTold, onCut: cut }, body);
    undo.defer(() => {
      lines.stop();
      this.#close(exchange);
    });
    try {
      if (call.query.get("sendInitialEvents") !== "true" && random.chance(faults().apiForgets)) {
        onFault("API expires a watch");
        throw tooOld(0);
      }
      const watch = server.watch(call, lines);
      undo.defer(() => server.forget(watch));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      undo.dispose();
      return this.#answer(exchange, refused(error));
    }
    undo.use(server.onDown(() => cut(ended())));
    undo.use(onAbort(signal, () => cut(signal.reason as Error)));
    exchange.cut = cut;
    this.#travel(() => {
      if (!isAlive()) return;
      exchange.answer({ status: 200, headers: { "content-type": "application/json" }, body });
    });
  }

  #stick(exchange: Exchange): void {
    const { clock, faults, onFault } = this.#settings;
    if (exchange.stuck) return;
    exchange.stuck = true;
    onFault("API connection half dead");
    if (faults().apiHalfDead !== "noticed") return;
    const error = new KubeConnectionError(`no data received for ${noticeMs / 1000} s`);
    exchange.timer = clock.timer("data from the API server", noticeMs, () => {
      exchange.fail(error);
      exchange.cut(error);
    });
  }

  #close(exchange: Exchange): void {
    exchange.timer?.[Symbol.dispose]();
    this.#open.delete(exchange);
  }

  #delivered(version: number): void {
    const { seen } = this.#settings;
    seen.version = Math.max(seen.version, version);
  }

  #travel(then: () => void): Disposable {
    return this.#settings.clock.timer("the way to the API server", this.#delayMs(), then);
  }

  #delayMs(): number {
    const { random, faults, onFault } = this.#settings;
    const { apiDelayMaxMs } = faults();
    if (apiDelayMaxMs > slowMs) onFault("API slow");
    return 0.5 + random.uniform() * apiDelayMaxMs;
  }
}

const slowMs = 100;

function ended(): KubeConnectionError {
  return new KubeConnectionError("the simulated API server ended");
}

/** Undefined for a path that the server will reject. */
function partsOf(request: KubeRequest): ApiCallParts | undefined {
  try {
    return parseRequest(request);
  } catch {
    return undefined;
  }
}
