import { stringify } from "yaml";

/** How the API server is reached. */
export interface ClusterAddress {
  readonly server: string;
  readonly ca:
    | { readonly kind: "inline"; readonly text: string }
    | { readonly kind: "file"; readonly path: string }
    | undefined;
  readonly serverName: string | undefined;
  readonly insecure: boolean;
  readonly proxyUrl?: string;
}

/** The kubeconfig of a node whose certificate and key are in one file, as the Go kubelet writes it. Pure. */
export function kubeconfigText(address: ClusterAddress, pairPath: string): string {
  const { server, ca, serverName, insecure, proxyUrl } = address;
  const cluster = {
    ...(ca?.kind === "file" && { "certificate-authority": ca.path }),
    ...(ca?.kind === "inline" && { "certificate-authority-data": Buffer.from(ca.text).toString("base64") }),
    ...(insecure && { "insecure-skip-tls-verify": true }),
    ...(proxyUrl !== undefined && { "proxy-url": proxyUrl }),
    server,
    ...(serverName !== undefined && { "tls-server-name": serverName }),
  };
  const context = { cluster: "default-cluster", namespace: "default", user: "default-auth" };
  return stringify(
    {
      apiVersion: "v1",
      clusters: [{ cluster, name: "default-cluster" }],
      contexts: [{ context, name: "default-context" }],
      "current-context": "default-context",
      kind: "Config",
      users: [{ name: "default-auth", user: { "client-certificate": pairPath, "client-key": pairPath } }],
    },
    // What reads it takes YAML 1.1: `yes` and `0o7` need quotes.
    { version: "1.1", lineWidth: 0, indentSeq: false },
  );
}
