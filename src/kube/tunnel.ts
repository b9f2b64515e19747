import { request, STATUS_CODES } from "node:http";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, getCACertificates } from "node:tls";
import { onAbort } from "../base/abort.ts";
import { hostOf, serverNameOf } from "../base/host.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import { failureReason } from "./connection-error.ts";
import { proxyHeaders, proxyName } from "./proxy.ts";

/** What is behind the proxy, and whom the kubeconfig trusts: as in client-go that goes for the proxy too. */
interface Behind {
  readonly url: URL;
  readonly ca: string | undefined;
  readonly insecure: boolean;
}

/**
 * A connection to the proxy, over TLS if its URL requires it; it is still opening, and reports errors by its events.
 */
export function connectProxy({ ca, insecure }: Behind, proxy: URL): Socket {
  const secure = proxy.protocol === "https:";
  const host = hostOf(proxy);
  const servername = serverNameOf(host);
  const port = Number(proxy.port || (secure ? 443 : 80));
  if (!secure) return connectTcp({ host, port });
  return connectTls({
    ...{ host, port, rejectUnauthorized: !insecure, minVersion: "TLSv1.2", allowPartialTrustChain: true },
    ...(servername !== undefined && { servername }),
    // A proxy is seldom of the cluster: whom the machine trusts counts as well.
    ...(ca !== undefined && { ca: [...getCACertificates("default"), ca] }),
  });
}

/** A connection through the proxy to the API server, without TLS to that yet. @throws KubeConnectionError */
export async function openTunnel(behind: Behind, proxy: URL, signal: AbortSignal): Promise<Socket> {
  const { url } = behind;
  const target = `${url.hostname}:${url.port || 443}`;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const asked = request({
    createConnection: () => connectProxy(behind, proxy),
    method: "CONNECT",
    path: target,
    headers: { host: target, ...proxyHeaders(proxy) },
  });
  asked.on("error", reject);
  asked.once("connect", ({ statusCode: status = 0 }, socket: Socket, head) => {
    // Until another listener is added: an error without a listener would end the process.
    socket.on("error", () => {});
    if (head.length > 0) socket.unshift(head);
    if (status >= 200 && status < 300) return resolve(socket);
    socket.destroy();
    const remedy = status === 407 ? ": add a valid user and password to its URL" : "";
    reject(new Error(`it answered ${status} ${STATUS_CODES[status] ?? ""}`.trimEnd() + remedy));
  });
  using _abort = onAbort(signal, () => asked.destroy(new Error("canceled")));
  asked.end();
  try {
    return await promise;
  } catch (error) {
    signal.throwIfAborted();
    const text = `API server ${url.host}: the proxy ${proxyName(proxy)}: ${failureReason(error)}`;
    throw new KubeConnectionError(text, { cause: error });
  }
}
