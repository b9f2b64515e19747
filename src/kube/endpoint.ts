import type { TcpNetConnectOpts } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import type { Identity } from "./credentials.ts";

/** Where the API server is, and how it proves to be it. */
export interface Endpoint {
  readonly url: URL;
  /** PEM; undefined: whom the system trusts. */
  readonly ca: string | undefined;
  readonly serverName: string | undefined;
  readonly insecure: boolean;
}

/** For a socket that says nothing: the kernel asks for a sign of life after so long, then every second. */
const keepAliveMs = 10_000;

/** Options of a TLS connection to the endpoint. */
export function tlsOptions({ url, ca, serverName, insecure }: Endpoint, identity: Identity): ConnectionOptions {
  const host = url.hostname.replace(/^\[(.*)\]$/u, "$1");
  return {
    host,
    port: Number(url.port || 443),
    // An IP address is no server name (RFC 6066); Node.js then checks the certificate by `host`.
    ...(serverName === undefined ? (/^[\d.]+$|:/u.test(host) ? {} : { servername: host }) : { servername: serverName }),
    ...(ca !== undefined && { ca }),
    ...identity.certificate,
    rejectUnauthorized: !insecure,
    minVersion: "TLSv1.2",
  };
}

/** Connects and shakes hands; the protocol agreed upon is the socket's `alpnProtocol`. @throws KubeConnectionError */
export async function openTls(endpoint: Endpoint, identity: Identity, signal: AbortSignal): Promise<TLSSocket> {
  signal.throwIfAborted();
  let socket: TLSSocket;
  try {
    socket = connectTls({ ...tlsOptions(endpoint, identity), ALPNProtocols: ["h2", "http/1.1"] });
  } catch (error) {
    // A key that is none, or not the certificate's.
    throw connectionError(endpoint, error);
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once("secureConnect", resolve).once("error", reject);
  socket.once("close", () => reject(new Error("the connection was closed before it was made")));
  using _abort = onAbort(signal, () => socket.destroy(new Error("called off")));
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

/** Options of a connection without TLS. */
export function tcpOptions({ url }: Endpoint): TcpNetConnectOpts {
  const host = url.hostname.replace(/^\[(.*)\]$/u, "$1");
  return { host, port: Number(url.port || 80), noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs };
}

/** What the errors of TLS mean to who wrote the kubeconfig. */
const explanations: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: "the kubeconfig's certificate authority did not sign its certificate",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the kubeconfig's certificate authority did not sign its certificate",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the kubeconfig's certificate authority did not sign its certificate",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the kubeconfig's certificate authority did not sign its certificate",
  CERT_SIGNATURE_FAILURE: "the kubeconfig's certificate authority did not sign its certificate",
  CERT_HAS_EXPIRED: "its certificate has expired, or this machine's clock is ahead",
  CERT_NOT_YET_VALID: "its certificate is not valid yet, or this machine's clock is behind",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "it asks for a client certificate",
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: "it says that our certificate has expired",
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: "the kubeconfig's key is not that of its certificate",
};

/** An error of a connection in words that name the server and what is wrong with it. */
export function connectionError({ url }: Pick<Endpoint, "url">, error: unknown): KubeConnectionError {
  if (error instanceof KubeConnectionError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // OpenSSL's whole messages name lines of its sources; `reason` is what they say.
  const reason = error instanceof Error && "reason" in error ? String(error.reason) : errorMessage(error);
  const meaning = explanations[code];
  const detail = meaning === undefined ? reason : `${meaning} (${reason})`;
  return new KubeConnectionError(`API server ${url.host}: ${detail}`, { cause: error });
}
