import * as z from "zod";

/** A registry credential. A secret: never to be shown. */
export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
  readonly email: string;
  /** OAuth2 refresh token, used instead of name and password. Empty: none. */
  readonly identityToken: string;
}

/** A credential and its registry, as named in the file: `https://index.docker.io/v1/`, `*.example.org/team`. */
export interface RegistryEntry {
  readonly registry: string;
  readonly credential: RegistryCredential;
}

/** An invalid file. The message names the registry, and quotes no part of a credential. */
export class DockerConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DockerConfigError";
  }
}

/** `config.json` has its registries in `auths`, the older `.dockercfg` at the top. */
export type DockerConfigForm = "config.json" | ".dockercfg";

const text = z.string().nullish();
const Entry = z.looseObject({ username: text, password: text, email: text, auth: text, identitytoken: text });
const Entries = z.record(z.string(), z.unknown()).nullish();

/**
 * The credentials in a Docker configuration file, in its order. As upstream, credential helpers are not called;
 * credential provider plugins replace them.
 * @throws DockerConfigError
 */
export function decodeDockerConfig(bytes: Uint8Array, form: DockerConfigForm): RegistryEntry[] {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // The parser's error would quote the text.
    throw new DockerConfigError("is not JSON");
  }
  const entries = Entries.safeParse(form === "config.json" && isObject(json) ? Reflect.get(json, "auths") : json);
  if (!isObject(json) || !entries.success) {
    throw new DockerConfigError(
      form === "config.json" ? '"auths" is not a map of registries' : "is not a map of registries",
    );
  }
  return Object.entries(entries.data ?? {}).map(([registry, value]) => {
    return { registry, credential: credentialOf(registry, value ?? {}) };
  });
}

function credentialOf(registry: string, value: unknown): RegistryCredential {
  const entry = Entry.safeParse(value);
  if (!entry.success) throw new DockerConfigError(`the entry of ${JSON.stringify(registry)} must hold strings only`);
  const { username, password, email, auth, identitytoken } = entry.data;
  const pair = auth ? decodePair(registry, auth) : { username: username ?? "", password: password ?? "" };
  return { ...pair, email: email ?? "", identityToken: identitytoken ?? "" };
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/u;

/** `auth` is base64(username:password), padded or not. */
function decodePair(registry: string, auth: string): Pick<RegistryCredential, "username" | "password"> {
  const packed = auth.replaceAll(/\s/gu, "");
  const plain = base64.test(packed) ? Buffer.from(packed, "base64").toString() : "";
  const colon = plain.indexOf(":");
  if (colon < 0) throw new DockerConfigError(`"auth" of ${JSON.stringify(registry)} is not base64(username:password)`);
  return { username: plain.slice(0, colon), password: plain.slice(colon + 1) };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
