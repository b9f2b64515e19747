import { onAbort } from "../base/abort.ts";
import { version } from "../base/version.ts";
import type { CertificateManager } from "../certificates/certificate-manager.ts";
import type { CertificateSource } from "../kube/credentials.ts";
import type { KubeAccess } from "../kube/kubeconfig.ts";
import { openKubeTransport } from "../kube/transport.ts";
import type { KeyPair } from "../ports/certificates.ts";
import { KubeConnectionError, type KubeTransport } from "../ports/kube-api.ts";
import type { Ports } from "../ports/ports.ts";
import { platform } from "./platform.ts";

const userAgent = `podwright/${version} (${platform})`;

/** The node's identity at the server with this pair. */
export function clientCertificate({ certificate, key }: KeyPair): { readonly cert: string; readonly key: string } {
  return { cert: certificate, key };
}

export function transportOf(
  ports: Ports,
  access: KubeAccess,
  certificate?: CertificateSource,
): KubeTransport & Disposable {
  const { clock, files, processes } = ports;
  const deps = { clock, files, processes, userAgent, environment: process.env };
  return openKubeTransport(access, certificate === undefined ? deps : { ...deps, clientCertificate: certificate });
}

/** Less than any request's timeout, so that a missing certificate is reported as such. */
const certificateWaitMs = 8000;

/** The node's transport to the API server. Requests wait for the first certificate. */
export function nodeTransport(
  ports: Ports,
  access: KubeAccess,
  certificates: CertificateManager | undefined,
): KubeTransport & Disposable {
  if (certificates === undefined) return transportOf(ports, access);
  return transportOf(ports, access, async (signal) => {
    const { current } = certificates;
    if (current !== undefined) return clientCertificate(current);
    const wait = Promise.withResolvers<void>();
    using _change = certificates.onChange(wait.resolve);
    using _timer = ports.clock.timer("a client certificate", certificateWaitMs, wait.resolve);
    using _signal = onAbort(signal, wait.resolve);
    await wait.promise;
    signal.throwIfAborted();
    const issued = certificates.current;
    if (issued !== undefined) return clientCertificate(issued);
    throw new KubeConnectionError(certificates.problem);
  });
}
