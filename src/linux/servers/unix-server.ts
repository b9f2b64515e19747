import type { ApiServer } from "../../ports/api-server.ts";
import type { NodeHandler } from "../../ports/node-server.ts";
import { serveHttp, type HttpServerOptions } from "./http-server.ts";
import { listenPrivately } from "../http/unix-socket.ts";

/**
 * Serves HTTP/1.1 on a Unix socket of mode 0600 (see {@link listenPrivately} for what it replaces and rejects).
 * Permission to open the socket is the only authentication.
 */
export async function serveUnix(
  path: string,
  handler: NodeHandler,
  options: HttpServerOptions = {},
): Promise<ApiServer> {
  return await serveHttp(handler, options, async (server) => {
    return { address: path, remove: await listenPrivately(server, path) };
  });
}
