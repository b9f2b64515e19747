import { onAbort } from "../../src/base/abort.ts";
import { ApiClient, type ApiClientLimits } from "../../src/api-client/client.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "../../src/ports/kube-api.ts";
import { ManualClock, settle } from "./manual-clock.ts";

/** One request that came, and the ways to answer it. */
export class ScriptedRequest {
  readonly request: KubeRequest;
  readonly url: URL;
  readonly #answer = Promise.withResolvers<KubeResponse>();
  readonly #chunks: (string | Error | undefined)[] = [];
  #wake: (() => void) | undefined;

  constructor(request: KubeRequest) {
    this.request = request;
    this.url = new URL(request.path, "http://kube");
    // Who is called off before the answer came need not wait for it.
    this.#answer.promise.catch(() => {});
    onAbort(request.signal, () => {
      this.#answer.reject(request.signal.reason);
      this.fail(request.signal.reason instanceof Error ? request.signal.reason : new Error("canceled"));
    });
  }

  get response(): Promise<KubeResponse> {
    return this.#answer.promise;
  }

  get body(): unknown {
    return this.request.body === undefined ? undefined : JSON.parse(this.request.body);
  }

  /** A whole answer. */
  async json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.text(JSON.stringify(value), status, headers);
  }

  /** A whole answer that need not be JSON. */
  async text(text: string, status: number, headers: Readonly<Record<string, string>>): Promise<void> {
    this.#open(status, headers);
    this.#chunks.push(text, undefined);
    await this.#flush();
  }

  /** An answer that goes on. */
  async open(): Promise<void> {
    this.#open(200, {});
    await settle();
  }

  /** More of the answer; values become a line each, texts go as they are. */
  async write(...parts: readonly (object | string)[]): Promise<void> {
    for (const part of parts) this.#chunks.push(typeof part === "string" ? part : `${JSON.stringify(part)}\n`);
    await this.#flush();
  }

  async end(): Promise<void> {
    this.#chunks.push(undefined);
    await this.#flush();
  }

  /** The connection breaks. */
  fail(error: Error): void {
    this.#answer.reject(error);
    this.#chunks.push(error);
    this.#wake?.();
  }

  #open(status: number, headers: Readonly<Record<string, string>>): void {
    this.#answer.resolve({ status, headers, body: this.#body() });
  }

  async #flush(): Promise<void> {
    this.#wake?.();
    await settle();
  }

  async *#body(): AsyncIterable<Uint8Array> {
    for (;;) {
      while (this.#chunks.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
      const chunk = this.#chunks.shift();
      if (chunk === undefined) return;
      if (chunk instanceof Error) throw chunk;
      yield new TextEncoder().encode(chunk);
    }
  }
}

/** An API server whose every answer the test gives by hand. */
export class ScriptedKube implements KubeTransport {
  readonly clock = new ManualClock();
  /** All that came, answered or not. */
  readonly requests: ScriptedRequest[] = [];
  #taken = 0;

  async send(request: KubeRequest): Promise<KubeResponse> {
    const scripted = new ScriptedRequest(request);
    this.requests.push(scripted);
    return await scripted.response;
  }

  client(limits: Partial<ApiClientLimits> = {}): ApiClient {
    const none = { perSecond: 0, burst: 0 };
    return new ApiClient(
      { transport: this, clock: this.clock },
      { requests: none, events: none, heartbeatTimeoutMs: 10_000, ...limits },
    );
  }

  /** The next request that nobody has looked at, once it has come. */
  async next(): Promise<ScriptedRequest> {
    await settle();
    const request = this.requests[this.#taken];
    if (request === undefined) throw new Error(`no request came; waits: ${this.clock.waits.join(", ")}`);
    this.#taken++;
    return request;
  }

  /** Whether requests came that nobody has looked at. */
  async isQuiet(): Promise<boolean> {
    await settle();
    return this.requests.length === this.#taken;
  }
}
