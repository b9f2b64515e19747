import * as net from "node:net";
import { errorMessage } from "../base/errors.ts";
import { ClientSession } from "../http2/client-session.ts";
import { ConnectionLostError } from "../http2/errors.ts";
import { sendTogether } from "../http2/send-together.ts";
import type { Clock } from "../ports/clock.ts";

/** Delay of the first background reconnect; it doubles up to the maximum, as upstream's dial back-off. */
const firstReconnectMs = 100;
const maxReconnectMs = 3_000;

/**
 * Flow control (RFC 9113 §5.2). An unread stream may hold back this much and no more. The connection's window is far
 * larger than a few such streams, so a stalled event stream never blocks other calls.
 */
const limits = {
  streamWindowBytes: 1024 * 1024,
  connectionWindowBytes: 256 * 1024 * 1024,
  /** Servers' error texts travel in headers. A server that knows the limit fails only the one call. */
  headerListBytes: 60 * 1024,
};

/** What is read is used before the next read: all connections share the buffer. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

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
  /** Every session with its socket, also those that finish their last responses after a GOAWAY. */
  readonly #sockets = new Map<ClientSession, net.Socket>();
  #current: ClientSession | undefined;
  #opening: Promise<ClientSession> | undefined;
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

  /** For a call; undefined: the connection is to be opened first. */
  get session(): ClientSession | undefined {
    return this.#current;
  }

  /** Connects, unless there is a connection; rejects with the socket's error. */
  open(): Promise<ClientSession> {
    if (this.#closed) return Promise.reject(new Error("the client is closed"));
    if (this.#current !== undefined) return Promise.resolve(this.#current);
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /** Ends the connection and all its calls; later ones are rejected. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.#current = undefined;
    this.#reconnectTimer?.[Symbol.dispose]();
    for (const [session, socket] of this.#sockets) {
      session.end(new ConnectionLostError("the client is closed"));
      socket.destroy();
    }
  }

  async #open(): Promise<ClientSession> {
    const { promise, resolve, reject } = Promise.withResolvers<ClientSession>();
    let session: ClientSession | undefined;
    const read = (bytes: number): boolean => {
      try {
        session?.push(readBuffer.subarray(0, bytes));
      } catch (error) {
        socket.destroy(new ConnectionLostError(errorMessage(error), { cause: error }));
      }
      return true;
    };
    const socket = net.connect({ path: this.#path, onread: { buffer: readBuffer, callback: read } });
    let cause = new ConnectionLostError("the connection closed");
    socket.once("connect", () => {
      if (this.#closed) return void socket.destroy();
      session = this.#begin(socket);
      resolve(session);
      this.#onChange({ state: "connected" });
    });
    // Never removed: an "error" event without a listener would end the process.
    socket.on("error", (error) => (cause = new ConnectionLostError(errorMessage(error), { cause: error })));
    // No response can follow.
    socket.once("end", () => socket.destroy());
    socket.once("close", () => {
      reject(cause);
      if (session !== undefined) this.#lost(session, cause);
      this.#reconnectLater();
    });
    return promise;
  }

  #begin(socket: net.Socket): ClientSession {
    const session = new ClientSession(limits, {
      send: sendTogether(socket),
      goAway: (reason) => this.#lose(session, `the ${this.name} asked to reconnect: ${reason}`),
      drained: () => socket.destroySoon(),
    });
    this.#sockets.set(session, socket);
    this.#current = session;
    this.#reconnectMs = firstReconnectMs;
    this.#reconnectTimer?.[Symbol.dispose]();
    this.#reconnectTimer = undefined;
    return session;
  }

  #lost(session: ClientSession, cause: Error): void {
    this.#sockets.delete(session);
    this.#lose(session, cause.message);
    session.end(cause);
  }

  #lose(session: ClientSession, reason: string): void {
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
      this.open().catch(() => {});
    });
    this.#reconnectMs = Math.min(this.#reconnectMs * 2, maxReconnectMs);
  }
}
