import { connect, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { errorMessage } from "../../base/errors.ts";
import { hostOf, serverNameOf } from "../../base/host.ts";

/**
 * A connection to a runtime's streaming server, still connecting; errors come as its events. Over TLS the server needs
 * a certificate that the machine trusts, as for the Go kubelet.
 */
export function connectStreaming(url: URL): Socket {
  const secure = url.protocol === "https:";
  const [host, port] = [hostOf(url), Number(url.port || (secure ? 443 : 80))];
  if (!secure) return connect({ host, port, allowHalfOpen: true });
  const servername = serverNameOf(host);
  return connectTls({
    ...{ host, port, allowHalfOpen: true, ALPNProtocols: ["http/1.1"], secureContext: trustOfMachine() },
    ...(servername !== undefined && { servername }),
  });
}

let context: SecureContext | undefined;

/** Read at the first use, because it takes a third of a second, and once: changes apply after a restart. */
function trustOfMachine(): SecureContext {
  context ??= createSecureContext({
    ca: [...new Set([...getCACertificates("default"), ...getCACertificates("system")])],
    allowPartialTrustChain: true,
    minVersion: "TLSv1.2",
  });
  return context;
}

/** The message for a client when a streaming server is unreachable. */
export function streamingFailure(url: URL, error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!certificateProblems.test(code)) {
    return `the container runtime's streaming server did not answer: ${errorMessage(error)}`;
  }
  // Node.js appends advice about its own options.
  const reason = errorMessage(error).split("; if ")[0];
  return (
    `the container runtime's streaming server ${url.host} has a certificate that this machine does not trust ` +
    `(${reason}): add its authority to the machine's trusted certificates and restart podwright, ` +
    "or turn TLS off for streams in the runtime's configuration (CRI-O: stream_enable_tls)"
  );
}

const certificateProblems = /CERT|SIGNATURE|ISSUER|CRL/u;
