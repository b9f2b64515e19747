import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Writable } from "node:stream";
import type { ApiServer } from "../../ports/api-server.ts";
import type { NodeHandler } from "../../ports/node-server.ts";
import { systemClock } from "../processes/clock.ts";
import { ConnectionGuard, type ConnectionLimits } from "../http/connection-guard.ts";
import { Exchange, type ExchangeOptions } from "../http/http-exchange.ts";
import { changeProtocol, withoutUpgrade } from "../streams/protocol-change.ts";

export interface HttpServerOptions extends ExchangeOptions {
  /** How long requests in progress may take to finish after `close`, in milliseconds; default 1,000. */
  readonly closeGraceMs?: number;
  /** Enables protocol upgrades: the idle limit of such a connection, in milliseconds. */
  readonly streamingIdleMs?: number;
  /** For clients that anybody may be: idle ones make room. Default: clients above a fixed number are rejected. */
  readonly limits?: ConnectionLimits;
}

const maxConnections = 1_024;
/** As of the kubelet's API: a command of exec is in the path. */
const maxHeaderSize = 1024 * 1024;

/**
 * Serves HTTP/1.1 on the address that `listen` opens.
 * @param listen resolves once the server listens, to its address and to a cleanup for after the server closed
 */
export async function serveHttp(
  handler: NodeHandler,
  options: HttpServerOptions,
  listen: (server: Server) => Promise<{ readonly address: string; readonly remove?: () => Promise<void> }>,
): Promise<ApiServer> {
  const { closeGraceMs = 1_000, streamingIdleMs, limits } = options;
  const closing = new AbortController();
  const server = createServer({ maxHeaderSize });
  const guard = limits && new ConnectionGuard(server, limits);
  if (guard === undefined) server.maxConnections = maxConnections;
  const beginFor = (incoming: IncomingMessage, end: Writable): void => {
    const active = guard?.begin(incoming.socket);
    end.once("close", () => active?.[Symbol.dispose]());
  };
  server.on("request", (incoming, outgoing) => {
    beginFor(incoming, outgoing);
    // No keep-alive: clients connect for each request, so none is idle when the server closes.
    outgoing.shouldKeepAlive = false;
    void new Exchange(incoming, outgoing, options).run(withoutUpgrade(handler, incoming), closing.signal);
  });
  if (streamingIdleMs !== undefined) {
    server.on("upgrade", (incoming, client, head) => {
      beginFor(incoming, client);
      void changeProtocol({ incoming, client, head }, handler, { ...options, streamingIdleMs }, closing.signal);
    });
  }
  const { address, remove } = await listen(server);

  async function close(): Promise<void> {
    closing.abort(new Error("the server is closing"));
    const closed = once(server, "close");
    server.close();
    using _grace = systemClock.timer(`requests at ${address} to end`, closeGraceMs, () => server.closeAllConnections());
    await closed;
    guard?.[Symbol.dispose]();
    await remove?.();
  }
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= close());
  return { address, close: closeOnce, [Symbol.asyncDispose]: closeOnce };
}
