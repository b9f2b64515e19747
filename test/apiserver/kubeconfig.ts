import type { Credentials } from "./certificates.ts";

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** A self-contained kubeconfig. JSON is YAML. */
export function kubeconfig(server: string, authority: string, who: Credentials | { readonly token: string }): string {
  const user =
    "token" in who
      ? { token: who.token }
      : { "client-certificate-data": base64(who.certificate), "client-key-data": base64(who.key) };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, "certificate-authority-data": base64(authority) } }],
    users: [{ name: "test", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    "current-context": "test",
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
