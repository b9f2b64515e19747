import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Authenticator, Identity } from "./access.ts";

const authenticated = "system:authenticated";
const credentialId = "authentication.kubernetes.io/credential-id";

/** By client certificate: CN is the user, O are the groups; authorizers also learn its digest. */
export const byCertificate: Authenticator = async ({ certificate }) => {
  if (certificate === undefined) return undefined;
  const { commonName: name, organizations, uids, sha256 } = certificate;
  const [uid, another] = uids;
  if (another !== undefined || uid === "") {
    throw new Error(`the client certificate of ${name} has ${uid === "" ? "an empty UID" : `${uids.length} UIDs`}`);
  }
  const groups = [...organizations, authenticated];
  return { name, groups, ...(uid !== undefined && { uid }), extra: { [credentialId]: [`X509SHA256=${sha256}`] } };
};

const nobody: Identity = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/** A client without credentials is `system:anonymous`. */
export const anonymous: Authenticator = async ({ headers }) => {
  return headers["authorization"] === undefined ? nobody : "invalid";
};

/**
 * By any of several methods, as upstream's union: an error of one does not keep the next from being tried.
 * @throws the errors, if no method knows the client
 */
export function byAny(authenticators: readonly Authenticator[]): Authenticator {
  return async (request) => {
    const problems: string[] = [];
    let found: Awaited<ReturnType<Authenticator>>;
    for (const authenticate of authenticators) {
      try {
        found = await authenticate(request);
      } catch (error) {
        problems.push(errorMessage(error));
      }
      if (found !== undefined) break;
    }
    if (problems.length > 0 && (found === undefined || found === "invalid")) throw new Error(problems.join("; "));
    return found;
  };
}

/**
 * A client that no other method authenticates is `system:anonymous`, whatever its credentials: for public endpoints.
 */
export function orAnonymous(authenticators: readonly Authenticator[]): Authenticator {
  return async (request) => {
    for (const authenticate of authenticators) {
      const found = await authenticate(request).catch(() => undefined);
      if (found !== undefined && found !== "invalid") return found;
    }
    return nobody;
  };
}

/** By a bearer token from a list, final when `alone`. Tokens are compared by digest, so that timing reveals nothing. */
export function byToken(
  hashing: Pick<Hashing, "sha256">,
  identities: ReadonlyMap<string, Identity>,
  alone: boolean,
): Authenticator {
  const byDigest = new Map([...identities].map(([token, identity]) => [hashing.sha256(token), identity]));
  return async ({ headers }) => {
    const token = /^Bearer +(\S+) *$/i.exec(headers["authorization"] ?? "")?.[1];
    if (token === undefined) return undefined;
    return byDigest.get(hashing.sha256(token)) ?? (alone ? "invalid" : undefined);
  };
}

/**
 * Parses a token file in the format of kube-apiserver's `--token-auth-file`: lines of `token,user,uid`, optionally
 * followed by `,"group1,group2"`.
 * @throws PodwrightError (bad input) with the line, and never a token
 */
export function parseTokenFile(text: string, path: string): Map<string, Identity> {
  const identities = new Map<string, Identity>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const problem = (what: string): PodwrightError =>
      new PodwrightError(ExitCode.badInput, `${path}:${index + 1}: ${what}`, {
        remedy: 'a line is token,user,uid or token,user,uid,"group1,group2"',
      });
    const fields = csvFields(line);
    if (fields === undefined) throw problem("unclosed quote");
    const [token = "", name = "", uid = "", groups = ""] = fields;
    if (fields.length < 3) throw problem(`it has ${fields.length} fields`);
    if (token === "" || /\s/.test(token)) throw problem("the token is empty or contains white space");
    if (name === "") throw problem("the user's name is empty");
    if (identities.has(token)) throw problem("duplicate token");
    const named = groups.split(",").filter((group) => group !== "");
    identities.set(token, { name, groups: [...named, authenticated], ...(uid !== "" && { uid }) });
  }
  return identities;
}

/** Undefined when a quote does not close. */
function csvFields(line: string): string[] | undefined {
  const fields: string[] = [];
  for (let rest = line.trimEnd(); ;) {
    const match = /^\s*(?:"((?:[^"]|"")*)"\s*|([^",]*))(,|$)/.exec(rest);
    if (match === null) return undefined;
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2]?.trim() ?? "");
    if (match[3] === "") return fields;
    rest = rest.slice(match[0].length);
  }
}
