import * as http2 from "node:http2";
import * as net from "node:net";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** Delay of the first background reconnect; it doubles up to the maximum, as upstream's dial back-off. */
const firstReconnectMs = 100;
const maxReconnectMs = 3_000;

/**
 * Flow control (RFC 9113 §5.2). An unread stream may hold back this much and no more. The connection's window is far
 * larger than a few such streams, so a stalled event stream never blocks other calls.
 */
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 256 * 1024 * 1024;

/**
 * Sent to the server, whose error texts travel in headers. Node ends the whole connection at 64 KiB of them; a server
 * that knows the limit resets only the one call.
 */
const maxHeaderBytes = 60 * 1024;

/** Go's gRPC refuses an empty `:authority`; its value means nothing on a Unix socket. */
const authority = "http://localhost";

/**
 * The content type is gRPC's own name, which means protobuf. Servers that detect the protocol by the first header
 * (CRI-O's) do not recognise `application/grpc+proto` and hang up.
 */
const headersOfAll = {
  ":method": "POST",
  "content-type": "application/grpc",
  te: "trailers",
  "user-agent": "podwright",
};

/**
 * A session's buffer limit, in Node's unit of megabytes: one message of the largest size in each direction, and some
 * room.
 */
const maxSessionMemoryMegabytes = 256;

/** Whether the peer can be reached: for the journal, for health, and to resubscribe to events. */
export type ConnectionChange = { readonly state: "connected" } | { readonly state: "lost"; readonly reason: string };

/**
 * One HTTP/2 connection to a Unix socket. It stays open while both sides live: never closed when idle and never pinged,
 * because a Unix socket reports at once that the peer is gone.
 *
 * It opens with the first call. After a loss every call tries to connect at once: the kernel answers in microseconds,
 * so an absent server fails the call fast and a returned one serves it. Between calls a background attempt with
 * back-off reopens it, so that `onChange` reports the return even without calls.
 */
export class Connection implements Disposable {
  /** For the deadlines of calls. */
  readonly clock: Clock;
  readonly #path: string;
  /** The peer's name in messages: `runtime`. */
  readonly name: string;
  readonly #onChange: (change: ConnectionChange) => void;
  /** Every session with its socket, also those that finish their last streams after a GOAWAY. */
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

  /** True once disposed of: podwright itself cut calls that fail afterwards. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Opens the stream of a call, connecting first if necessary; rejects with Node's error. */
  async request(path: string, headers: http2.OutgoingHttpHeaders): Promise<http2.ClientHttp2Stream> {
    const session = await this.#session();
    return session.request({ ...headersOfAll, ...headers, ":path": path });
  }

  /** Ends the connection and all its streams; later requests are rejected. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.#reconnectTimer?.[Symbol.dispose]();
    for (const [session, socket] of this.#sessions) {
      session.destroy(undefined, http2.constants.NGHTTP2_CANCEL);
      // Otherwise the session would wait until a hung server has read what it was sent.
      socket.destroy();
    }
  }

  #session(): Promise<http2.ClientHttp2Session> {
    if (this.#closed) return Promise.reject(new Error("the client is closed"));
    const current = this.#current;
    if (current !== undefined) {
      if (!current.closed && !current.destroyed) return Promise.resolve(current);
      // It ended a moment ago and its "close" event is pending. Node 26 would fail the request, not throw.
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
    // Never removed: an "error" event without a listener would end the process.
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
      // A failure has scheduled the next attempt already, and no caller waits for this one.
      this.#session().catch(() => {});
    });
    this.#reconnectMs = Math.min(this.#reconnectMs * 2, maxReconnectMs);
  }
}
