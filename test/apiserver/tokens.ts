import { generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from "node:crypto";
import { conflict, invalid, notFound } from "./api-error.ts";
import type { TokenAuthenticator, User } from "./authn.ts";
import { at, type Fields, fieldsAt, isFields, type Json, listAt, numberAt, textAt, timestamp } from "./objects.ts";
import type { Store } from "./store.ts";

const issuer = "https://kubernetes.default.svc.cluster.local";
const shortestSeconds = 600;

function encode(value: Fields): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function decode(part: string | undefined): Fields {
  try {
    const value = JSON.parse(Buffer.from(part ?? "", "base64url").toString()) as Json;
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}

/** Service account tokens: JWTs bound to a pod and its node (KEP-1205, KEP-4193). */
export class TokenIssuer {
  readonly #store: Store;
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;

  constructor(store: Store) {
    this.#store = store;
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#privateKey = privateKey;
    this.#publicKey = publicKey;
  }

  /**
   * Handles a TokenRequest.
   * @throws ApiError 404 if the account or the bound object does not exist, 409 if its UID differs
   */
  issue(namespace: string, name: string, request: Fields): Fields {
    const account = this.#store.get("serviceaccounts", `${namespace}/${name}`);
    if (account === undefined) throw notFound({ group: "", resource: "serviceaccounts", name });
    const seconds = numberAt(request, "spec.expirationSeconds") ?? 3600;
    if (seconds < shortestSeconds) {
      const subject = { group: "authentication.k8s.io", resource: "tokenrequests", name: "" };
      throw invalid(subject, "TokenRequest", [
        ["spec.expirationSeconds", `Invalid value: ${seconds}: may not specify a duration less than 10 minutes`],
      ]);
    }
    const wanted = listAt(request, "spec.audiences").map(String);
    const audiences = wanted.length === 0 ? [issuer] : wanted;
    const nowSeconds = Math.floor(Date.now() / 1000);
    const bound = this.#bound(namespace, fieldsAt(request, "spec.boundObjectRef"));
    const token = this.#sign({
      iss: issuer,
      sub: `system:serviceaccount:${namespace}:${name}`,
      aud: audiences,
      iat: nowSeconds,
      nbf: nowSeconds,
      exp: nowSeconds + seconds,
      jti: randomUUID(),
      "kubernetes.io": { namespace, serviceaccount: { name, uid: account.metadata.uid }, ...bound },
    });
    return {
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      metadata: { name, namespace, uid: account.metadata.uid, creationTimestamp: timestamp() },
      spec: { ...fieldsAt(request, "spec"), audiences, expirationSeconds: seconds },
      status: { token, expirationTimestamp: timestamp((nowSeconds + seconds) * 1000) },
    };
  }

  /** The user of a valid token for this server. */
  readonly authenticate: TokenAuthenticator = (token) => this.review(token, [issuer])?.user;

  /** A token's user and those of the audiences that it has; undefined: invalid, or none. */
  review(token: string, audiences: readonly string[]): { user: User; audiences: readonly string[] } | undefined {
    const [header, payload, signature] = token.split(".");
    if (decode(header)["alg"] !== "ES256" || signature === undefined) return undefined;
    const key = { key: this.#publicKey, dsaEncoding: "ieee-p1363" } as const;
    const signed = Buffer.from(`${header ?? ""}.${payload ?? ""}`);
    if (!verify("sha256", signed, key, Buffer.from(signature, "base64url"))) return undefined;
    const claims = decode(payload);
    const nowSeconds = Date.now() / 1000;
    if ((numberAt(claims, "exp") ?? 0) <= nowSeconds) return undefined;
    const meant = new Set(listAt(claims, "aud").map(String));
    const asked = audiences.length === 0 ? [issuer] : audiences;
    const both = asked.filter((audience) => meant.has(audience));
    const user = both.length === 0 ? undefined : this.#user(claims["kubernetes.io"] ?? {}, textAt(claims, "jti"));
    return user === undefined ? undefined : { user, audiences: both };
  }

  #sign(claims: Fields): string {
    const text = `${encode({ alg: "ES256", kid: "test" })}.${encode(claims)}`;
    const key = { key: this.#privateKey, dsaEncoding: "ieee-p1363" } as const;
    return `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`;
  }

  /** The claims about a token's bound object: a pod with its node, or a secret. */
  #bound(namespace: string, reference: Fields): Fields {
    const resource = { Pod: "pods", Secret: "secrets" }[textAt(reference, "kind")];
    if (resource === undefined) return {};
    const name = textAt(reference, "name");
    const object = this.#store.get(resource, `${namespace}/${name}`);
    if (object === undefined) throw notFound({ group: "", resource, name });
    const uid = textAt(reference, "uid");
    if (uid !== "" && uid !== object.metadata.uid) {
      const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
      throw conflict({ group: "", resource, name }, why);
    }
    const node = this.#store.get("nodes", textAt(object, "spec.nodeName"));
    return {
      [resource === "pods" ? "pod" : "secret"]: { name, uid: object.metadata.uid },
      ...(node === undefined ? {} : { node: { name: node.metadata.name, uid: node.metadata.uid } }),
    };
  }

  /** The user of claims, if all bound objects still exist. */
  #user(claims: Json, tokenId: string): User | undefined {
    const namespace = textAt(claims, "namespace");
    const account = textAt(claims, "serviceaccount.name");
    const isThere = (resource: string, claim: string): boolean => {
      const uid = at(claims, `${claim}.uid`);
      return (
        uid === undefined ||
        this.#store.get(resource, `${namespace}/${textAt(claims, `${claim}.name`)}`)?.metadata.uid === uid
      );
    };
    if (!isThere("serviceaccounts", "serviceaccount") || !isThere("pods", "pod") || !isThere("secrets", "secret")) {
      return undefined;
    }
    const extra: Record<string, readonly string[]> = {
      "authentication.kubernetes.io/credential-id": [`JTI=${tokenId}`],
    };
    for (const [claim, name] of [
      ["pod.name", "pod-name"],
      ["pod.uid", "pod-uid"],
      ["node.name", "node-name"],
      ["node.uid", "node-uid"],
    ] as const) {
      const value = textAt(claims, claim);
      if (value !== "") extra[`authentication.kubernetes.io/${name}`] = [value];
    }
    return {
      name: `system:serviceaccount:${namespace}:${account}`,
      uid: textAt(claims, "serviceaccount.uid"),
      groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`],
      extra,
    };
  }
}
