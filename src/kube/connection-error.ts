import { errorMessage } from "../base/errors.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";

/** The server that a connection is for, and whom its certificate has to come from: PEM, or whom the machine trusts. */
interface Server {
  readonly url: URL;
  readonly ca: string | undefined;
}

/** TLS errors in terms of the kubeconfig, with the fields to check. */
const explanations: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "its certificate has expired, or this machine's clock is ahead",
  CERT_NOT_YET_VALID: "its certificate is not valid yet, or this machine's clock is behind",
  ERR_TLS_CERT_ALTNAME_INVALID:
    "its certificate is for another name: set server, or tls-server-name, of the kubeconfig's cluster to a name in it",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    "it requires a client certificate: set client-certificate and client-key of the kubeconfig's user",
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: "it reports that the client certificate has expired",
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA:
    "it does not trust the authority that signed the certificate of the kubeconfig's user",
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: "it rejects the certificate of the kubeconfig's user",
  ERR_OSSL_X509_KEY_VALUES_MISMATCH:
    "the kubeconfig's key does not match its certificate: check client-certificate and client-key of its user",
  ERR_OSSL_PEM_NO_START_LINE:
    "the kubeconfig's certificate or key is not PEM: check client-certificate and client-key of its user",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS there: check server of the kubeconfig's cluster",
};

/** The server's certificate chain leads to no trusted authority. */
const untrusted: ReadonlySet<string> = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_SIGNATURE_FAILURE",
]);

/** A connection error that names the server, the problem and what to check. */
export function connectionError({ url, ca }: Server, error: unknown): KubeConnectionError {
  if (error instanceof KubeConnectionError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const meaning = untrusted.has(code) ? distrust(ca) : explanations[code];
  const detail = failureReason(error);
  const text = meaning === undefined ? detail : `${meaning} (${detail})`;
  return new KubeConnectionError(`API server ${url.host}: ${text}`, { cause: error });
}

/** Why a connection failed, without data of the other side. */
export function failureReason(error: unknown): string {
  // OpenSSL's whole messages name lines of its sources; `reason` is what they say.
  const reason = error instanceof Error && "reason" in error ? String(error.reason) : errorMessage(error);
  return withoutNodeAdvice(reason);
}

function distrust(ca: string | undefined): string {
  const fields = "certificate-authority or certificate-authority-data of its cluster";
  if (!ca) return `its certificate is signed by an unknown authority: set ${fields} in the kubeconfig`;
  if (!ca.includes("-----BEGIN CERTIFICATE-----")) {
    return `the kubeconfig's certificate authority is not a PEM certificate: check ${fields}`;
  }
  return `the kubeconfig's certificate authority did not sign its certificate: check ${fields}`;
}

/** Node.js's hint is for programmers; a node's administrator has a kubeconfig. */
function withoutNodeAdvice(reason: string): string {
  return reason.replace(/; if the root CA is installed locally.*$/su, "");
}
