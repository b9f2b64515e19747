import type { Agent } from "node:http";
import type { TcpNetConnectOpts } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { eitherSignal, onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { hostOf, serverNameOf } from "../base/host.ts";
import type { Clock } from "../ports/clock.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import { connectionError } from "./connection-error.ts";
import type { Identity } from "./credentials.ts";
import { proxyName } from "./proxy.ts";
import { connectProxy, openTunnel } from "./tunnel.ts";

/** Where the API server is, and how it proves to be it. */
export interface Endpoint {
  readonly url: URL;
  /** PEM; undefined: whom the system trusts. */
  readonly ca: string | undefined;
  readonly serverName: string | undefined;
  readonly insecure: boolean;
  /** Through which it is reached. */
  readonly proxy?: URL;
}

/** The server no longer has the pod of that UID. */
const keepAliveMs = 10_000;
/** So long a connection is waited for. */
export const connectTimeoutMs = 10_000;

/** Options of a TLS connection to the endpoint. */
export function tlsOptions({ url, ca, serverName, insecure }: Endpoint, identity: Identity): ConnectionOptions {
  const host = hostOf(url);
  const servername = serverName ?? serverNameOf(host);
  return {
    host,
    port: Number(url.port || 443),
    // Without one Node.js checks the certificate by `host`.
    ...(servername !== undefined && { servername }),
    ...(ca !== undefined && { ca }),
    // As in Go each authority counts, also an intermediate one whose root is missing.
    allowPartialTrustChain: true,
    ...identity.certificate,
    rejectUnauthorized: !insecure,
    minVersion: "TLSv1.2",
  };
}

/** Connects and shakes hands; the protocol agreed upon is the socket's `alpnProtocol`. @throws KubeConnectionError */
export async function openTls(
  endpoint: Endpoint,
  identity: Identity,
  signal: AbortSignal,
  protocols: readonly string[] = ["h2", "http/1.1"],
): Promise<TLSSocket> {
  signal.throwIfAborted();
  const tunnel = endpoint.proxy && (await openTunnel(endpoint, endpoint.proxy, signal));
  let socket: TLSSocket;
  try {
    const options = { ...tlsOptions(endpoint, identity), ALPNProtocols: [...protocols] };
    socket = connectTls({ ...options, ...(tunnel && { socket: tunnel }) });
  } catch (error) {
    tunnel?.destroy();
    // An invalid key, or not the certificate's.
    throw connectionError(endpoint, error);
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once("secureConnect", resolve).once("error", reject);
  socket.once("close", () => reject(new Error("the connection was closed before it was established")));
  using _abort = onAbort(signal, () => socket.destroy(new Error("canceled")));
  try {
    await promise;
    socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
    return socket;
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw connectionError(endpoint, error);
  }
}

/**
 * Makes a connection within its time.
 * @param closed calls it off
 * @throws KubeConnectionError naming the server, the proxy and the limit
 */
export async function withinConnectTime<T>(
  clock: Clock,
  { url, proxy }: Endpoint,
  closed: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  using _timer = clock.timer("a connection to the API server", connectTimeoutMs, () => limit.abort());
  using either = eitherSignal(limit.signal, closed);
  try {
    return await work(either.signal);
  } catch (error) {
    if (!limit.signal.aborted) throw error;
    const through = proxy ? ` through the proxy ${proxyName(proxy)}` : "";
    const text = `API server ${url.host}: no connection${through} within ${connectTimeoutMs / 1000} s`;
    throw new KubeConnectionError(text, { cause: errorMessage(error) });
  }
}

/**
 * How an agent of HTTP/1.1 connects through the endpoint's proxy. @param closed aborts connections that are being
 * opened
 */
export function connectionsThrough(
  proxy: URL,
  endpoint: Endpoint,
  identity: Identity,
  clock: Clock,
  closed: AbortSignal,
): Agent["createConnection"] {
  if (endpoint.url.protocol === "http:") {
    return () => connectProxy(endpoint, proxy).setNoDelay(true).setKeepAlive(true, keepAliveMs);
  }
  return (_options, callback) => {
    // Node.js expects no socket beside an error, whatever its types say.
    const made = callback as (error: Error | null, socket?: TLSSocket) => void;
    const open = (signal: AbortSignal): Promise<TLSSocket> => openTls(endpoint, identity, signal, ["http/1.1"]);
    withinConnectTime(clock, endpoint, closed, open).then(
      (socket) => made(null, socket),
      (error: unknown) => made(connectionError(endpoint, error)),
    );
    return undefined;
  };
}

/** Options of a connection without TLS. */
export function tcpOptions({ url }: Endpoint): TcpNetConnectOpts {
  return {
    host: hostOf(url),
    port: Number(url.port || 80),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveMs,
  };
}
