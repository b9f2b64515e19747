import { once } from "node:events";
import type { Server } from "node:net";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import { errnoOf } from "../file-error.ts";

/** An IP address and a port; port 0 picks a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Listens on a TCP port. As in Go `0.0.0.0` means every address of both families, where the machine has IPv6.
 * @param remedy for people, when the address is not available
 * @returns the given address with the port
 * @throws PodwrightError (environment) when the address is not available
 */
export async function listenOn(
  server: Server,
  { host, port }: ListenAddress,
  remedy?: string,
): Promise<{ readonly address: string; readonly port: number }> {
  // Without a host Node.js opens `::` for both families, or `0.0.0.0` without IPv6.
  server.listen({ ...(host !== "0.0.0.0" && { host }), port });
  try {
    await once(server, "listening");
  } catch (error) {
    server.close();
    const reason = errnoOf(error) ?? String(error);
    throw new PodwrightError(ExitCode.environment, `cannot listen on ${host}:${port}: ${reason}`, {
      cause: error,
      ...(remedy !== undefined && { remedy }),
    });
  }
  const address = server.address();
  const own = typeof address === "object" && address !== null ? address.port : port;
  return { address: `${host}:${own}`, port: own };
}
