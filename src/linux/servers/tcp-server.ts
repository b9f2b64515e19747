import type { ApiServer } from "../../ports/api-server.ts";
import type { NodeHandler } from "../../ports/node-server.ts";
import { plainError } from "../http/api-errors.ts";
import { answerClientErrors } from "../http/client-errors.ts";
import type { ConnectionLimits } from "../http/connection-guard.ts";
import { serveHttp, type HttpServerOptions } from "./http-server.ts";
import { type ListenAddress, listenOn } from "./listen.ts";

const defaultLimits: ConnectionLimits = { connections: 1_024, pendingBytes: 16 * 1024 * 1024 };

/**
 * Serves HTTP/1.1 without authentication on a TCP port: for public information only. Port 0 picks a free one; the
 * server's address has the port (`127.0.0.1:10248`).
 * @throws PodwrightError (environment) when the address is not available
 */
export async function serveTcp(
  address: ListenAddress,
  handler: NodeHandler,
  options: HttpServerOptions = {},
): Promise<ApiServer> {
  return await serveHttp(handler, { errorAnswer: plainError, limits: defaultLimits, ...options }, async (server) => {
    answerClientErrors(server);
    return await listenOn(server, address);
  });
}
