import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { KubeAccess } from "./kubeconfig.ts";

const directory = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Access as a pod's service account has it, from the variables and files that kubelets give to pods.
 * @throws PodwrightError (bad input) when this is no pod
 */
export function inClusterAccess(environment: Readonly<Record<string, string | undefined>>): KubeAccess {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) {
    throw new PodwrightError(ExitCode.badInput, "the kubeconfig has no cluster, and podwright does not run in a pod", {
      remedy: "use a kubeconfig with a cluster, a user and a current context",
    });
  }
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ca: { kind: "file", path: `${directory}/ca.crt` },
    serverName: undefined,
    insecure: false,
    user: { token: { kind: "file", path: `${directory}/token` } },
  };
}
