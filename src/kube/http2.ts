import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { Socket } from "node:net";
import { onAbort, orAborted } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";
import { KubeConnectionError, type KubeRequest, type KubeResponse } from "../ports/kube-api.ts";
import { connectionError } from "./connection-error.ts";
import type { Endpoint } from "./endpoint.ts";
import { silentMs, textHeaders } from "./http1.ts";

/** Maximum unread data of a session: lists are large. */
const windowBytes = 4 * 1024 * 1024;
/** When the server has not said yet how many requests it takes at a time on a connection. */
const assumedStreams = 100;

export interface Liveness {
  /** The next ping after this time since the last response. */
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
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #liveness: Liveness;
  readonly #settled = Promise.withResolvers<void>();
  #failure: Error | undefined;
  #streams = 0;
  #retired = false;
  #timer: Disposable | undefined;

  /** @param socket connected, with `h2` agreed upon (or without TLS, by prior knowledge) */
  constructor(endpoint: Endpoint, socket: Socket, clock: Clock, liveness: Liveness) {
    this.#endpoint = endpoint;
    this.#socket = socket;
    this.#clock = clock;
    this.#liveness = liveness;
    this.#session = connect(endpoint.url.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: windowBytes },
    });
    this.#session.once("connect", () => {
      if (!this.#session.destroyed) this.#session.setLocalWindowSize(windowBytes);
    });
    // Requests get errors of their own; without a listener this one would end the process.
    this.#session.on("error", (error: Error) => (this.#failure = error));
    this.#session.once("goaway", () => (this.#retired = true));
    this.#session.once("remoteSettings", () => this.#settled.resolve());
    this.#session.once("close", () => {
      this.#timer?.[Symbol.dispose]();
      this.#settled.resolve();
    });
    this.#watchLife();
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
    return !this.#retired && !this.#session.closed && !this.#session.destroyed;
  }

  get hasRoom(): boolean {
    return this.#streams < (this.#session.remoteSettings?.maxConcurrentStreams ?? assumedStreams);
  }

  async send(request: KubeRequest, headers: Readonly<Record<string, string>>): Promise<KubeResponse> {
    const { signal, body } = request;
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<KubeResponse>();
    const stream = this.#open(request, headers);
    this.#streams++;
    stream.once("close", () => this.#streams--);
    stream.once("response", (answer) => {
      const { ":status": status = 0, ...rest } = answer;
      resolve({ status, headers: textHeaders(rest), body: this.#body(stream, signal) });
    });
    stream.on("error", reject);
    stream.once("close", () => reject(new Error("the connection was closed without a response")));
    const listening = onAbort(signal, () => stream.close(constants.NGHTTP2_CANCEL));
    stream.once("close", () => listening[Symbol.dispose]());
    stream.end(body);
    try {
      return await promise;
    } catch (error) {
      signal.throwIfAborted();
      const failure = connectionError(this.#endpoint, error);
      if (stream.rstCode !== constants.NGHTTP2_REFUSED_STREAM) throw failure;
      throw new RefusedStreamError(failure.message, { cause: error });
    }
  }

  /** Accepts no more requests; current ones continue. @param ended called when the last of them is done */
  retire(ended: () => void): void {
    this.#retired = true;
    if (this.#session.destroyed) return ended();
    this.#session.once("close", ended);
    if (!this.#session.closed) this.#session.close();
  }

  /** Ends everything at once. */
  close(): void {
    this.#timer?.[Symbol.dispose]();
    this.#session.destroy();
  }

  #open({ method, path, body }: KubeRequest, headers: Readonly<Record<string, string>>): ClientHttp2Stream {
    const { host, protocol } = this.#endpoint.url;
    try {
      return this.#session.request(
        { ...headers, ":method": method, ":path": path, ":authority": host, ":scheme": protocol.slice(0, -1) },
        { endStream: body === undefined },
      );
    } catch (error) {
      throw connectionError(this.#endpoint, error);
    }
  }

  async *#body(stream: ClientHttp2Stream, signal: AbortSignal): AsyncIterable<Uint8Array> {
    try {
      for await (const chunk of stream) if (chunk instanceof Uint8Array) yield chunk;
      signal.throwIfAborted();
      // A stream that was reset without an error code, or whose session ended, just ends.
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) throw new Error(`the stream was reset (${stream.rstCode})`);
      if (this.#session.destroyed && !stream.readableEnded) throw new Error("the connection was lost");
    } catch (error) {
      signal.throwIfAborted();
      throw connectionError(this.#endpoint, error);
    } finally {
      stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  /**
   * A ping is sent however much it sends meanwhile: the time of the last byte is unknown, only the number of bytes. So
   * the connection is dropped at most `quietMs` and `answerMs` after its last byte.
   */
  #watchLife(): void {
    this.#timer = this.#clock.timer("data from the API server", this.#liveness.quietMs, () => {
      if (!this.#session.destroyed) this.#ask();
    });
  }

  #ask(): void {
    this.#await();
    // A closing connection cannot be pinged.
    if (this.#session.closed) return;
    const sent = this.#session.ping((error) => {
      if (error !== null || this.#session.destroyed) return;
      this.#timer?.[Symbol.dispose]();
      this.#watchLife();
    });
    if (!sent && !this.#session.destroyed) this.#dead("cannot send a ping");
  }

  /** An answer may be behind much else on a slow line: while anything comes it is waited for. */
  #await(): void {
    const bytes = this.#socket.bytesRead;
    const limitMs = this.#session.closed ? silentMs : this.#liveness.answerMs;
    this.#timer = this.#clock.timer("the API server to answer a ping", limitMs, () => {
      if (this.#session.destroyed) return;
      if (this.#socket.bytesRead === bytes) this.#dead(`no data received for ${limitMs / 1000} s`);
      else this.#await();
    });
  }

  #dead(problem: string): void {
    this.#session.destroy(connectionError(this.#endpoint, new Error(problem)));
  }
}
