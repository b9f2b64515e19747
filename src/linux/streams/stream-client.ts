import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import { errnoOf } from "../file-error.ts";
import { readBody } from "../http/http-body.ts";
import { SpdySession } from "./spdy-session.ts";
import { SocketError } from "../http/unix-client.ts";

/** A response other than an upgrade. */
export class UpgradeRefusedError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.name = "UpgradeRefusedError";
    this.status = status;
  }
}

export interface Streams {
  readonly session: SpdySession;
  /** Bytes received after the response: for {@link SpdySession.run}. */
  readonly head: Uint8Array;
}

const maxRefusalBytes = 64 * 1024;

/**
 * Requests SPDY streams from the server at a Unix socket.
 * @param protocol the streams' protocol: `v4.channel.k8s.io`, `portforward.k8s.io`
 * @throws UpgradeRefusedError, SocketError
 */
export async function openStreams(socketPath: string, path: string, protocol: string): Promise<Streams> {
  const headers = {
    Host: "podwright",
    Connection: "Upgrade",
    Upgrade: "SPDY/3.1",
    "X-Stream-Protocol-Version": protocol,
  };
  const connection = connect({ path: socketPath, allowHalfOpen: true });
  const outgoing = httpRequest({ method: "POST", path, headers, createConnection: () => connection });
  const { promise, resolve, reject } = Promise.withResolvers<Streams>();
  outgoing.once("upgrade", (_response: IncomingMessage, socket: Duplex, head: Buffer) => {
    resolve({ session: new SpdySession(socket), head });
  });
  outgoing.once("response", (response: IncomingMessage) => {
    const tooLong = (): Error => new Error("the error response is too long");
    readBody(response, maxRefusalBytes, tooLong)
      .then((body) => reject(new UpgradeRefusedError(response.statusCode ?? 0, body.toString("utf8").trim())), reject)
      .finally(() => connection.destroy());
  });
  outgoing.on("error", (error) => {
    reject(new SocketError(errnoOf(error) ?? "ECONNRESET", socketPath, error.message, { cause: error }));
  });
  outgoing.end();
  return await promise;
}

export interface Listener {
  readonly port: number;
  close(): void;
}

/**
 * Listens for TCP connections on this machine's network.
 * @param port 0: a free one
 * @throws PodwrightError (environment) when the address is not available
 */
export async function listenTcp(
  host: string,
  port: number,
  onConnection: (connection: Socket) => void,
): Promise<Listener> {
  const connections = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (connection) => {
    connections.add(connection);
    connection.once("close", () => connections.delete(connection));
    connection.on("error", () => {});
    onConnection(connection);
  });
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (error) {
    const errno = errnoOf(error) ?? "";
    throw new PodwrightError(ExitCode.environment, `cannot listen on ${host}:${port}: ${errno}`, {
      cause: error,
      remedy:
        errno === "EADDRNOTAVAIL"
          ? "use an address of this machine"
          : "use another local port, or omit it (:REMOTE) for a free one",
    });
  }
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: () => {
      server.close();
      for (const connection of connections) connection.destroy();
    },
  };
}
