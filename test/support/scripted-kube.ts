import { onAbort } from "../../src/base/abort.ts";
import { ApiClient, type ApiClientLimits } from "../../src/api-client/client.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "../../src/ports/kube-api.ts";
import { ManualClock, settle } from "./manual-clock.ts";

/** A received request, with methods to respond. */
export class ScriptedRequest {
  readonly request: KubeRequest;
  readonly url: URL;
  readonly #answer = Promise.withResolvers<KubeResponse>();
  readonly #chunks: (string | Uint8Array | Error | undefined)[] = [];
  #wake: (() => void) | undefined;

  constructor(request: KubeRequest) {
    this.request = request;
    this.url = new URL(request.path, "http://kube");
    // A canceled request need not wait for its response.
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

  /** A complete JSON response. */
  async json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.text(JSON.stringify(value), status, headers);
  }

  /** A complete response of any type. */
  async text(text: string, status: number, headers: Readonly<Record<string, string>>): Promise<void> {
    this.#open(status, headers);
    this.#chunks.push(text, undefined);
    await this.#flush();
  }

  /** A streaming response. */
  async open(): Promise<void> {
    this.#open(200, {});
    await settle();
  }

  /** More of the response; values become one line each, strings and bytes are sent as they are. */
  async write(...parts: readonly (object | string | Uint8Array)[]): Promise<void> {
    for (const part of parts) {
      const isRaw = typeof part === "string" || part instanceof Uint8Array;
      this.#chunks.push(isRaw ? part : `${JSON.stringify(part)}\n`);
    }
    await this.#flush();
  }

  async end(): Promise<void> {
    this.#chunks.push(undefined);
    await this.#flush();
  }

  /** Breaks the connection. */
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
      yield typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
    }
  }
}

/** An API server with responses written by the test. */
export class ScriptedKube implements KubeTransport {
  readonly clock = new ManualClock();
  /** All received requests, answered or not. */
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

  /** The next unread request, once received. */
  async next(): Promise<ScriptedRequest> {
    await settle();
    const request = this.requests[this.#taken];
    if (request === undefined) throw new Error(`no request came; waits: ${this.clock.waits.join(", ")}`);
    this.#taken++;
    return request;
  }

  /** Whether there are no unread requests. */
  async isQuiet(): Promise<boolean> {
    await settle();
    return this.requests.length === this.#taken;
  }
}
