import * as http2 from "node:http2";
import * as net from "node:net";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** Reconnecting in the background starts after this and doubles up to the maximum, as upstream's dial back-off. */
const firstReconnectMs = 100;
const maxReconnectMs = 3_000;

/**
 * Flow control (RFC 9113 §5.2). A stream that nobody reads may hold back this much and no more; the connection's window
 * is far larger than a few such streams, so a stalled event stream never takes the room of the other calls.
 */
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 256 * 1024 * 1024;

/**
 * Told to the server, whose error texts travel in headers. Node ends the whole connection at 64 KiB of them; one
 * that knows the limit resets the one call instead.
 */
const maxHeaderBytes = 60 * 1024;

/** Go's gRPC refuses an empty `:authority`; its value means nothing on a Unix socket. */
const authority = "http://localhost";

/**
 * Of every call. The content type is gRPC's own name, which means protobuf: servers that find out by the very first header which
 * protocol a connection speaks (CRI-O's) take `application/grpc+proto` for none and hang up.
 */
const headersOfAll = {
  ":method": "POST",
  "content-type": "application/grpc",
  te: "trailers",
  "user-agent": "podwright",
};

/** What a session may buffer, in Node's unit of megabytes: one message of the largest size both ways, and room. */
const maxSessionMemoryMegabytes = 256;

/** Tells whether the other end can be reached: for the journal, health, and to subscribe to events again. */
export type ConnectionChange = { readonly state: "connected" } | { readonly state: "lost"; readonly reason: string };

/**
 * One HTTP/2 connection to a Unix socket, kept for as long as both sides live: never idle-closed and never pinged,
 * because a Unix socket tells at once when the peer is gone.
 *
 * It opens with the first call. After a loss every call tries to connect at once (the kernel answers in microseconds:
 * an absent server fails the call fast, a returned one serves it), and between calls a background attempt with back-off
 * reopens it, so that `onChange` reports the return even when nobody calls.
 */
export class Connection implements Disposable {
  /** By which its calls end. */
  readonly clock: Clock;
  readonly #path: string;
  /** What is at the other end, for messages: `runtime`. */
  readonly name: string;
  readonly #onChange: (change: ConnectionChange) => void;
  /** Every session with a socket, also those that end after a GOAWAY while their last streams finish. */
  readonly #sessions = new Map<http2.ClientHttp2Session, net.Socket>();
  #current: http2.ClientHttp2Session | undefined;
  #opening: Promise<http2.ClientHttp2Session> | undefined;
  #reconnectTimer: Disposable | undefined;
  #reconnectMs = firstReconnectMs;
  #closed = false;

  constructor(clock: Clock, path: string, name: string, onChange: (change: ConnectionChange) => void) {
    this.clock = clock;
    this.#path = path;
    this.name = name;
    this.#onChange = onChange;
  }

  /** The socket as a URL, for messages. */
  get endpoint(): string {
    return `unix://${this.#path}`;
  }

  /** True once disposed of: calls that fail afterwards were cut by podwright itself. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Opens the stream of a call, connecting first when there is no connection; rejects with Node's error when that fails. */
  async request(path: string, headers: http2.OutgoingHttpHeaders): Promise<http2.ClientHttp2Stream> {
    const session = await this.#session();
    return session.request({ ...headersOfAll, ...headers, ":path": path });
  }

  /** Ends the connection and all its streams; later requests are refused. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.#reconnectTimer?.[Symbol.dispose]();
    for (const [session, socket] of this.#sessions) {
      session.destroy(undefined, http2.constants.NGHTTP2_CANCEL);
      // The session would first wait until a hung server has read what it was sent.
      socket.destroy();
    }
  }

  #session(): Promise<http2.ClientHttp2Session> {
    if (this.#closed) return Promise.reject(new Error("the client is closed"));
    const current = this.#current;
    if (current !== undefined) {
      if (!current.closed && !current.destroyed) return Promise.resolve(current);
      // It ended a moment ago and its "close" event is still to come. Node 26 would fail the request, not throw.
      this.#lose(current, "the connection closed");
    }
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #open(): Promise<http2.ClientHttp2Session> {
    const { promise, resolve, reject } = Promise.withResolvers<http2.ClientHttp2Session>();
    const socket = net.connect({ path: this.#path });
    const session = http2.connect(authority, {
      createConnection: () => socket,
      maxSessionMemory: maxSessionMemoryMegabytes,
      settings: { enablePush: false, initialWindowSize: streamWindowBytes, maxHeaderListSize: maxHeaderBytes },
    });
    this.#sessions.set(session, socket);
    let cause: unknown = new Error("the connection closed");
    session.once("connect", () => {
      if (session.destroyed) return;
      session.setLocalWindowSize(connectionWindowBytes);
      this.#current = session;
      this.#reconnectMs = firstReconnectMs;
      this.#reconnectTimer?.[Symbol.dispose]();
      this.#reconnectTimer = undefined;
      resolve(session);
      this.#onChange({ state: "connected" });
    });
    // Stays for the session's whole life: an "error" event without a listener would end the process.
    session.on("error", (error) => (cause = error));
    session.once("goaway", () => this.#lose(session, `the ${this.name} asked to reconnect`));
    session.once("close", () => {
      this.#sessions.delete(session);
      reject(cause);
      this.#lose(session, errorMessage(cause));
      this.#reconnectLater();
    });
    return promise;
  }

  #lose(session: http2.ClientHttp2Session, reason: string): void {
    if (this.#current !== session) return;
    this.#current = undefined;
    if (this.#closed) return;
    this.#onChange({ state: "lost", reason });
    this.#reconnectLater();
  }

  #reconnectLater(): void {
    if (this.#closed || this.#current !== undefined || this.#reconnectTimer !== undefined) return;
    this.#reconnectTimer = this.clock.timer(`a connection to the ${this.name}`, this.#reconnectMs, () => {
      this.#reconnectTimer = undefined;
      // A failure has arranged the next attempt already, and no caller waits for this one.
      this.#session().catch(() => {});
    });
    this.#reconnectMs = Math.min(this.#reconnectMs * 2, maxReconnectMs);
  }
}
