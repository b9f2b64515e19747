import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
}

/**
 * The network in front of the server: forwards each client's connection byte by byte, so that tests can imitate network
 * faults. It sees only ciphertext.
 */
export class Wire {
  readonly #upstreamPort: number;
  readonly #pairs = new Set<Pair>();
  #server: Server;
  #port: number;
  #latencyMs = 0;

  constructor(upstreamPort: number, port: number) {
    this.#upstreamPort = upstreamPort;
    this.#port = port;
    this.#server = this.#listener();
  }

  /** The port that clients connect to. */
  get port(): number {
    return this.#port;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Listens, always on the same port. */
  async up(): Promise<void> {
    if (this.#server.listening) return;
    this.#server = this.#listener();
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  /** Breaks all connections and refuses new ones, like a missing server. */
  async down(): Promise<void> {
    this.reset();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Resets the existing connections. */
  reset(): void {
    for (const { client, upstream } of this.#pairs) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  }

  /** Freezes the existing connections in both directions; new ones work. */
  freeze(): void {
    for (const { client, upstream } of this.#pairs) {
      client.unpipe(upstream);
      upstream.unpipe(client);
      client.removeAllListeners("data").pause();
      upstream.removeAllListeners("data").pause();
    }
  }

  /** Delays all data by this much in each direction, also on existing connections. */
  slow(latencyMs: number): void {
    this.#latencyMs = latencyMs;
  }

  #listener(): Server {
    return createServer({ noDelay: true }, (client) => this.#carry(client));
  }

  #carry(client: Socket): void {
    const upstream = connect({ port: this.#upstreamPort, host: "127.0.0.1", noDelay: true });
    const pair: Pair = { client, upstream };
    this.#pairs.add(pair);
    this.#forward(client, upstream);
    this.#forward(upstream, client);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
    }
  }

  #forward(from: Socket, to: Socket): void {
    from.on("data", (chunk: Buffer) => {
      if (this.#latencyMs > 0) {
        setTimeout(() => to.write(chunk), this.#latencyMs);
      } else if (!to.write(chunk)) {
        from.pause();
        to.once("drain", () => from.resume());
      }
    });
    from.on("end", () => setTimeout(() => to.end(), this.#latencyMs));
  }
}
