import { once } from "node:events";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import type { ApiServer } from "../../ports/api-server.ts";
import type { NodeHandler } from "../../ports/node-server.ts";
import { plainError } from "../http/api-errors.ts";
import { answerClientErrors } from "../http/client-errors.ts";
import { errnoOf } from "../file-error.ts";
import { serveHttp, type HttpServerOptions } from "./http-server.ts";

/**
 * Serves HTTP/1.1 without authentication on a TCP port: for public information only. Port 0 picks a free one; the
 * server's address has the port (`127.0.0.1:10248`).
 * @throws PodwrightError (environment) when the address is not available
 */
export async function serveTcp(
  { host, port }: { readonly host: string; readonly port: number },
  handler: NodeHandler,
  options: HttpServerOptions = {},
): Promise<ApiServer> {
  return await serveHttp(handler, { errorAnswer: plainError, ...options }, async (server) => {
    answerClientErrors(server);
    server.listen({ host, port });
    try {
      await once(server, "listening");
    } catch (error) {
      server.close();
      const reason = errnoOf(error) ?? String(error);
      throw new PodwrightError(ExitCode.environment, `cannot listen on ${host}:${port}: ${reason}`, { cause: error });
    }
    const address = server.address();
    return { address: `${host}:${typeof address === "object" && address !== null ? address.port : port}` };
  });
}
