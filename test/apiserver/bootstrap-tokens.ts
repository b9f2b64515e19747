import type { TokenAuthenticator } from "./authn.ts";
import { type Fields, fieldsAt, textAt } from "./objects.ts";
import type { Store } from "./store.ts";

const namespace = "kube-system";

/** A bootstrap token's Secret, like kubeadm's. */
export function bootstrapTokenSecret(token: string, expires = new Date(Date.now() + 3_600_000)): Fields {
  const [id = "", secret = ""] = token.split(".");
  const data = {
    "token-id": id,
    "token-secret": secret,
    "usage-bootstrap-authentication": "true",
    expiration: `${expires.toISOString().slice(0, 19)}Z`,
    "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `bootstrap-token-${id}`, namespace },
    type: "bootstrap.kubernetes.io/token",
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
  };
}

/** Authenticates the tokens of Secrets of type bootstrap.kubernetes.io/token (KEP-130). */
export function bootstrapTokens(store: Store): TokenAuthenticator {
  return (token) => {
    const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(token) ?? [];
    const found = id === undefined ? undefined : store.get("secrets", `${namespace}/bootstrap-token-${id}`);
    if (found === undefined || textAt(found, "type") !== "bootstrap.kubernetes.io/token") return undefined;
    const data = (key: string): string => {
      const value = fieldsAt(found, "data")[key];
      return typeof value === "string" ? Buffer.from(value, "base64").toString() : "";
    };
    const over = data("expiration") !== "" && Date.parse(data("expiration")) <= Date.now();
    if (data("token-id") !== id || data("token-secret") !== secret || over) return undefined;
    if (data("usage-bootstrap-authentication") !== "true") return undefined;
    const extra = data("auth-extra-groups").split(",");
    const groups = ["system:bootstrappers", ...extra.filter((group) => group.startsWith("system:bootstrappers:"))];
    return { name: `system:bootstrap:${id}`, groups };
  };
}
