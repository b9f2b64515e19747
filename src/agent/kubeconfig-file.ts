import { errorMessage } from "../base/errors.ts";
import { stateOf, timeProblem } from "../certificates/validity.ts";
import { inClusterAccess } from "../kube/in-cluster.ts";
import { decodeKubeconfig, type KubeAccess, type TextSource } from "../kube/kubeconfig.ts";
import { proxyOf } from "../kube/proxy.ts";
import { systemCertificateTools } from "../linux/certificates/certificate-tools.ts";
import type { CertificateInfo, KeyPair } from "../ports/certificates.ts";
import type { Ports } from "../ports/ports.ts";

const maxKubeconfigBytes = 1024 * 1024;

/** A usable kubeconfig with its user's certificate; or why it is unusable. */
export type FoundKubeconfig =
  | {
      readonly access: KubeAccess;
      readonly pair: KeyPair | undefined;
      /** The pair's chain: its own certificate first. */
      readonly chain: readonly CertificateInfo[];
      readonly problem: string | undefined;
    }
  | { readonly access: undefined; readonly problem: string; readonly cause: unknown };

export async function readKubeconfig(ports: Ports, path: string): Promise<FoundKubeconfig> {
  let access: KubeAccess;
  try {
    const bytes = await ports.files.read(path, maxKubeconfigBytes);
    access = decodeKubeconfig(new TextDecoder().decode(bytes), path) ?? inClusterAccess(process.env);
    // An invalid proxy is bad input here, before anything connects.
    proxyOf(access, process.env);
  } catch (error) {
    return { access: undefined, problem: errorMessage(error), cause: error };
  }
  const { certificate } = access.user;
  if (certificate === undefined) return { access, pair: undefined, chain: [], problem: undefined };
  try {
    const pair = { certificate: await text(ports, certificate.cert), key: await text(ports, certificate.key) };
    const chain = systemCertificateTools.certificates(pair.certificate);
    const nowMs = ports.clock.now();
    if (chain.length === 0) throw new Error("it holds no certificate");
    // A future one may be valid by the server's clock, which decides.
    const problem = stateOf(chain, nowMs) === "expired" ? timeProblem(chain, nowMs) : undefined;
    return { access, pair, chain, problem: problem && `client certificate: ${problem}` };
  } catch (error) {
    return { access, pair: undefined, chain: [], problem: `client certificate: ${errorMessage(error)}` };
  }
}

async function text({ files }: Ports, source: TextSource): Promise<string> {
  if (source.kind === "inline") return source.text;
  return new TextDecoder().decode(await files.read(source.path, maxKubeconfigBytes));
}
