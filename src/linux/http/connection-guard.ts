import type { Server, Socket } from "node:net";
import { systemClock } from "../processes/clock.ts";

export interface ConnectionLimits {
  /** Open connections; above this the longest idle one makes room. */
  readonly connections: number;
  /** Bytes of incomplete requests, summed over all connections. */
  readonly pendingBytes: number;
}

interface Connection {
  readonly socket: Socket;
  /** Requests in flight, and streams. */
  active: number;
  /** Bytes received when the response to its last request began. */
  readBefore: number;
}

/** Interval of checking what connections have sent, while there are many. */
const lookMs = 100;
const few = 16;

/**
 * Keeps clients that only open connections, or send endless requests, from blocking others or filling memory. Idle
 * connections make room for new ones, and the largest incomplete requests are closed first. Connections with a response
 * in progress stay open.
 */
export class ConnectionGuard implements Disposable {
  readonly #limits: ConnectionLimits;
  /** By the client's address and port; longest idle first. */
  readonly #connections = new Map<string, Connection>();
  #look: Disposable | undefined;

  constructor(server: Server, limits: ConnectionLimits) {
    this.#limits = limits;
    server.on("connection", (socket: Socket) => this.#add(socket));
  }

  get sockets(): readonly Socket[] {
    return [...this.#connections.values()].map(({ socket }) => socket);
  }

  /** The TCP connection below a client's TLS. */
  socketOf(client: Pick<Socket, "remoteAddress" | "remotePort">): Socket | undefined {
    return this.#connections.get(keyOf(client))?.socket;
  }

  /** Marks a response in progress until the result is disposed of. */
  begin(client: Pick<Socket, "remoteAddress" | "remotePort"> | undefined): Disposable {
    const key = client === undefined ? "" : keyOf(client);
    const connection = this.#connections.get(key);
    if (connection === undefined) return { [Symbol.dispose]: () => {} };
    connection.active++;
    connection.readBefore = connection.socket.bytesRead;
    let hasEnded = false;
    return {
      [Symbol.dispose]: () => {
        if (hasEnded) return;
        hasEnded = true;
        connection.active--;
        connection.readBefore = connection.socket.bytesRead;
        if (connection.active > 0 || !this.#connections.delete(key)) return;
        this.#connections.set(key, connection);
      },
    };
  }

  [Symbol.dispose](): void {
    this.#look?.[Symbol.dispose]();
    for (const socket of this.sockets) socket.destroy();
  }

  #add(socket: Socket): void {
    // Failed handshakes and resets are a matter of the clients.
    socket.on("error", () => {});
    const key = keyOf(socket);
    if (this.#connections.size >= this.#limits.connections) {
      const idle = this.#connections.values().find(({ active }) => active === 0);
      if (idle === undefined) {
        socket.destroy();
        return;
      }
      this.#drop(idle);
    }
    const connection = { socket, active: 0, readBefore: 0 };
    this.#connections.set(key, connection);
    socket.once("close", () => {
      if (this.#connections.get(key) === connection) this.#connections.delete(key);
    });
    this.#lookLater();
  }

  #drop({ socket }: Connection): void {
    this.#connections.delete(keyOf(socket));
    socket.destroy();
  }

  #lookLater(): void {
    if (this.#look !== undefined || this.#connections.size <= few) return;
    this.#look = systemClock.timer("the check of incomplete requests", lookMs, () => {
      this.#look = undefined;
      const pending = [...this.#connections.values()]
        .filter(({ active }) => active === 0)
        .map((connection) => ({ connection, bytes: connection.socket.bytesRead - connection.readBefore }))
        .toSorted((a, b) => b.bytes - a.bytes);
      let sum = pending.reduce((total, { bytes }) => total + bytes, 0);
      for (const { connection, bytes } of pending) {
        if (sum <= this.#limits.pendingBytes) break;
        this.#drop(connection);
        sum -= bytes;
      }
      this.#lookLater();
    });
  }
}

function keyOf({ remoteAddress = "", remotePort = 0 }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}
