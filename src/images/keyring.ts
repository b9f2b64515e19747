import type { Hashing } from "../ports/hashing.ts";
import { goJson } from "../base/go-json.ts";
import type { RegistryCredential, RegistryEntry } from "./docker-config.ts";
import { matchesRepository } from "./registry-pattern.ts";

/** The Secret that a credential comes from. */
export interface SecretSource {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** A credential and its origin; without one it is the node's own, which every pod may use. */
export interface TrackedCredential {
  readonly credential: RegistryCredential;
  readonly source: SecretSource | undefined;
  /** The service account that a credential provider was called for. */
  readonly account?: SecretSource | undefined;
}

/** Credentials by the registry or repository prefix that they apply to. */
export type Keyring = ReadonlyMap<string, readonly TrackedCredential[]>;

/** Docker Hub's name in the files of `docker login`. */
const defaultRegistry = "index.docker.io";

/** Pure. */
export function makeKeyring(
  lists: readonly (Pick<TrackedCredential, "source" | "account"> & { readonly entries: readonly RegistryEntry[] })[],
): Keyring {
  const keyring = new Map<string, TrackedCredential[]>();
  for (const { entries, source, account } of lists) {
    for (const { registry, credential } of entries) {
      const key = keyOf(registry);
      if (key === undefined) continue;
      const tracked = { credential, source, ...(account && { account }) };
      const known = keyring.get(key);
      if (known === undefined) keyring.set(key, [tracked]);
      else known.push(tracked);
    }
  }
  return keyring;
}

/**
 * The credentials for a repository in the order in which they are tried: most specific first, as upstream's keyring.
 * Docker Hub images without a match get the credentials of `docker login`. Pure.
 * @param repository with its registry: `docker.io/library/busybox`
 */
export function credentialsFor(keyring: Keyring, repository: string): readonly TrackedCredential[] {
  const keys = [...keyring.keys()].filter((key) => matchesRepository(key, repository));
  const found = keys.toSorted(descending).flatMap((key) => keyring.get(key) ?? []);
  if (found.length > 0) return found;
  const host = repository.split("/", 1)[0] ?? "";
  const isHub = host === "docker.io" || host === defaultRegistry;
  return isHub ? (keyring.get(defaultRegistry) ?? []) : [];
}

/**
 * The key of a registry name: host, port and path. The API version in the path, which Docker clients write, is dropped.
 * Undefined: an invalid name.
 */
function keyOf(registry: string): string | undefined {
  const place = registry.replace(/^https?:\/\//u, "").replace(/[?#].*$/su, "");
  const slash = place.indexOf("/");
  const host = (slash < 0 ? place : place.slice(0, slash)).replace(/^.*@/u, "");
  if (host === "" || /\s/u.test(host)) return undefined;
  const path = (slash < 0 ? "" : place.slice(slash)).replace(/^\/v[12]\//u, "/");
  return path === "/" ? host : host + path;
}

function descending(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? 1 : -1;
}

/** A hash that identifies a credential, computed as the Go kubelet does. */
export function credentialHash(
  hashing: Hashing,
  { username, password, email, identityToken }: RegistryCredential,
): string {
  const parts = Object.entries({ username, password, email, identitytoken: identityToken });
  return hashing.sha256(goJson(Object.fromEntries(parts.filter(([, value]) => value !== ""))));
}
