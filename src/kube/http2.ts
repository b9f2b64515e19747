import type { Socket } from "node:net";
import { onAbort, orAborted } from "../base/abort.ts";
import { ClientSession } from "../http2/client-session.ts";
import { StreamResetError } from "../http2/errors.ts";
import { errorCodes } from "../http2/frames.ts";
import { encodeFields } from "../http2/hpack.ts";
import { sendTogether } from "../http2/send-together.ts";
import type { Clock } from "../ports/clock.ts";
import { KubeConnectionError, type KubeRequest, type KubeResponse } from "../ports/kube-api.ts";
import { connectionError } from "./connection-error.ts";
import type { Endpoint } from "./endpoint.ts";
import { StreamedResponse } from "./streamed-response.ts";

const limits = {
  /** Lists are large. */
  streamWindowBytes: 4 * 1024 * 1024,
  connectionWindowBytes: 64 * 1024 * 1024,
  headerListBytes: 64 * 1024,
};

export interface Liveness {
  /** The next ping at most this time after the last response. */
  readonly quietMs: number;
  /** Without a byte for this long after a ping, the connection is dropped. */
  readonly answerMs: number;
}

/** Noticed within one heartbeat (10 s): by then a lease has to be renewed over a connection that works. */
export const defaultLiveness: Liveness = { quietMs: 5000, answerMs: 4000 };

/** The server has not processed the request: it may be resent, whatever it does (RFC 9113, 8.7). */
export class RefusedStreamError extends KubeConnectionError {}

/** One HTTP/2 connection that is dropped when it stops responding. */
export class Http2Connection {
  readonly #endpoint: Endpoint;
  readonly #session: ClientSession;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #liveness: Liveness;
  readonly #settled = Promise.withResolvers<void>();
  #failure: Error | undefined;
  #retired = false;
  #timer: Disposable | undefined;

  /** @param socket connected, with `h2` agreed upon (or without TLS, by prior knowledge) */
  constructor(endpoint: Endpoint, socket: Socket, clock: Clock, liveness: Liveness) {
    this.#endpoint = endpoint;
    this.#socket = socket;
    this.#clock = clock;
    this.#liveness = liveness;
    this.#session = new ClientSession(limits, {
      send: sendTogether(socket),
      settled: this.#settled.resolve,
      drained: () => socket.destroySoon(),
    });
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    // Never removed: an "error" event without a listener would end the process.
    socket.on("error", (error: Error) => (this.#failure = error));
    // No response can follow.
    socket.once("end", () => socket.destroy());
    socket.once("close", () => this.#end());
    if (socket.destroyed) this.#end();
    else this.#watchLife();
  }

  /**
   * Resolves when the server has said how many requests it takes at a time: before, a burst may be more than that.
   * @throws KubeConnectionError when it takes none, or has not said so before the signal aborts
   */
  async settle(signal: AbortSignal): Promise<void> {
    await orAborted(this.#settled.promise, signal);
    if (this.isOpen && this.hasRoom && !signal.aborted) return;
    const problem = this.isOpen
      ? "it accepts no requests on a new connection"
      : "the connection was closed without a response";
    this.close();
    throw connectionError(this.#endpoint, this.#failure ?? new Error(problem));
  }

  /** Whether it takes another request. */
  get isOpen(): boolean {
    return !this.#retired && this.#session.isOpen && !this.#socket.destroyed;
  }

  get hasRoom(): boolean {
    return this.#session.room > 0;
  }

  async send(request: KubeRequest, headers: Readonly<Record<string, string>>): Promise<KubeResponse> {
    const { signal, method, path, body = "" } = request;
    signal.throwIfAborted();
    const { host, protocol } = this.#endpoint.url;
    const pseudo = { ":method": method, ":scheme": protocol.slice(0, -1), ":authority": host, ":path": path };
    let aborting: Disposable | undefined;
    const response = new StreamedResponse(() => aborting?.[Symbol.dispose]());
    try {
      const block = encodeFields({ ...pseudo, ...headers });
      response.stream = this.#session.request(block, Buffer.from(body), response, true);
      aborting = onAbort(signal, () => response.abort());
      const { ":status": status, ...rest } = Object.fromEntries(await response.head);
      return {
        status: Number(status),
        headers: rest,
        body: response.body(signal, (error) => connectionError(this.#endpoint, error)),
      };
    } catch (error) {
      signal.throwIfAborted();
      const failure = connectionError(this.#endpoint, error);
      const isRefused = error instanceof StreamResetError && error.code === errorCodes.refusedStream;
      throw isRefused ? new RefusedStreamError(failure.message, { cause: error }) : failure;
    }
  }

  /** Accepts no more requests; current ones continue. @param ended called when the last of them is done */
  retire(ended: () => void): void {
    this.#retired = true;
    if (this.#socket.destroyed) return ended();
    this.#socket.once("close", ended);
    this.#session.retire();
  }

  /** Ends everything at once. */
  close(): void {
    this.#timer?.[Symbol.dispose]();
    this.#socket.destroy();
  }

  #end(): void {
    this.#timer?.[Symbol.dispose]();
    this.#session.end(this.#failure ?? new Error("the connection was closed without a response"));
    this.#settled.resolve();
  }

  #take(chunk: Buffer): void {
    try {
      this.#session.push(chunk);
    } catch (error) {
      this.#socket.destroy(error instanceof Error ? error : undefined);
    }
  }

  /**
   * A ping is sent however much it sends meanwhile: the time of the last byte is unknown, only the number of bytes. So
   * the connection is dropped at most `quietMs` and `answerMs` after its last byte. All connections ping at the same
   * times: a node at rest wakes up once for all.
   */
  #watchLife(): void {
    const { quietMs } = this.#liveness;
    const waitMs = quietMs - (this.#clock.monotonic() % quietMs);
    this.#timer = this.#clock.timer("data from the API server", waitMs, () => this.#ask());
  }

  #ask(): void {
    if (this.#socket.destroyed) return;
    this.#await();
    this.#session.ping(() => {
      if (this.#socket.destroyed) return;
      this.#timer?.[Symbol.dispose]();
      this.#watchLife();
    });
  }

  /** An answer may be behind much else on a slow line: while anything comes it is waited for. */
  #await(): void {
    const { bytesRead } = this.#socket;
    const { answerMs } = this.#liveness;
    this.#timer = this.#clock.timer("the API server to answer a ping", answerMs, () => {
      if (this.#socket.destroyed) return;
      if (this.#socket.bytesRead > bytesRead) this.#await();
      else this.#socket.destroy(new Error(`no data received for ${answerMs / 1000} s`));
    });
  }
}
