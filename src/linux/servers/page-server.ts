import { once } from "node:events";
import { createServer } from "node:http";
import type { ApiResponse, ApiServer } from "../../ports/api-server.ts";
import type { PageRequest } from "../../ports/node-page.ts";
import { systemClock } from "../processes/clock.ts";
import { ConnectionGuard, type ConnectionLimits } from "../http/connection-guard.ts";
import { Exchange } from "../http/http-exchange.ts";
import { listenOn } from "./listen.ts";

/** One person's browser opens a few; every user of the machine may connect. */
const limits: ConnectionLimits = { connections: 64, pendingBytes: 1024 * 1024 };
const maxBodyBytes = 4096;
const closeGraceMs = 500;

export interface PageServer extends ApiServer {
  readonly port: number;
}

/**
 * Serves browsers on this machine over HTTP/1.1, on the loopback address only. Port 0 picks a free one.
 * @param open creates the handler once the port is known
 * @throws PodwrightError (environment) when the port is not available
 */
export async function servePage(
  port: number,
  open: (port: number) => (request: PageRequest) => Promise<ApiResponse>,
): Promise<PageServer> {
  const closing = new AbortController();
  const server = createServer({ maxHeaderSize: 16 * 1024 });
  const guard = new ConnectionGuard(server, limits);
  const remedy = "use another --port, or omit it";
  const { address, port: ownPort } = await listenOn(server, { host: "127.0.0.1", port }, remedy);
  const handler = open(ownPort);
  server.on("request", (incoming, outgoing) => {
    const active = guard.begin(incoming.socket);
    outgoing.once("close", () => active[Symbol.dispose]());
    const headers: Record<string, string | undefined> = {};
    for (const [name, value] of Object.entries(incoming.headers)) {
      headers[name] = typeof value === "string" ? value : value?.join(", ");
    }
    const exchange = new Exchange(incoming, outgoing, { maxBodyBytes });
    void exchange.run(async (request) => await handler({ ...request, headers }), closing.signal);
  });

  async function close(): Promise<void> {
    closing.abort(new Error("the page is closed"));
    const closed = once(server, "close");
    server.close();
    server.closeIdleConnections();
    using _grace = systemClock.timer("browsers to disconnect", closeGraceMs, () => server.closeAllConnections());
    await closed;
    guard[Symbol.dispose]();
  }
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= close());
  return { address, port: ownPort, close: closeOnce, [Symbol.asyncDispose]: closeOnce };
}
