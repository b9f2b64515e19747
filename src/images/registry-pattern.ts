/** Of a DNS name, and of a label in it: nothing is pulled from a longer one. */
const longestHost = 253;
const longestLabel = 63;
/** A name in which every character is a class of several. */
const longestPattern = 4096;

/**
 * Whether a registry name or pattern matches an image's repository (upstream's URLsMatch): same port, as many host
 * labels (with `*`, `?` and `[a-z]` within a label), and a path that is a prefix of the repository's. Pure.
 * @param pattern without a scheme: `*.example.org:5000/team`
 * @param repository with its registry: `docker.io/library/busybox`
 */
export function matchesRepository(pattern: string, repository: string): boolean {
  const [wanted, actual] = [splitPlace(pattern), splitPlace(repository)];
  if (wanted.host.length > longestPattern || actual.host.length > longestHost) return false;
  const [patterns, parts] = [wanted.host.split("."), actual.host.split(".")];
  return (
    parts.every((part) => part.length <= longestLabel) &&
    wanted.port === actual.port &&
    patterns.length === parts.length &&
    actual.path.startsWith(wanted.path) &&
    patterns.every((part, index) => matchesPart(part, parts[index] ?? ""))
  );
}

function splitPlace(place: string): { readonly host: string; readonly port: string; readonly path: string } {
  const slash = place.indexOf("/");
  const authority = slash < 0 ? place : place.slice(0, slash);
  const path = slash < 0 ? "" : place.slice(slash);
  const bracketed = /^\[([^\]]*)\](?::(\d+))?$/u.exec(authority);
  if (bracketed !== null) return { host: bracketed[1] ?? "", port: bracketed[2] ?? "", path };
  const colon = authority.lastIndexOf(":");
  if (colon < 0) return { host: authority, port: "", path };
  return { host: authority.slice(0, colon), port: authority.slice(colon + 1), path };
}

/** An element of a pattern: a run of any characters, or a single character that it matches. */
type Token = "run" | ((character: string) => boolean);

/** Patterns may be malicious: the time is bounded by the product of both lengths. */
function matchesPart(pattern: string, text: string): boolean {
  const tokens = tokensOf(pattern);
  if (tokens === undefined) return false;
  let [at, position] = [0, 0];
  let retry: { readonly token: number; position: number } | undefined;
  while (position < text.length) {
    const token = tokens[at];
    if (token === "run") {
      retry = { token: at + 1, position };
      at++;
    } else if (token?.(text.charAt(position))) {
      at++;
      position++;
    } else if (retry !== undefined) {
      // Backtracks: the last run takes one more character.
      retry.position++;
      at = retry.token;
      position = retry.position;
    } else {
      return false;
    }
  }
  return tokens.slice(at).every((token) => token === "run");
}

/** Undefined for an invalid pattern. */
function tokensOf(pattern: string): Token[] | undefined {
  const tokens: Token[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at);
    if (character === "*") {
      tokens.push("run");
    } else if (character === "?") {
      tokens.push(() => true);
    } else if (character === "[") {
      const end = pattern.indexOf("]", at + 2);
      const token = end < 0 ? undefined : classOf(pattern.slice(at + 1, end));
      if (token === undefined) return undefined;
      tokens.push(token);
      at = end;
    } else {
      const literal = character === "\\" ? pattern.charAt(++at) : character;
      if (literal === "") return undefined;
      tokens.push((other) => other === literal);
    }
  }
  return tokens;
}

const asciiCount = 128;
const hyphen = 0x2d;

/**
 * `a-z0-9`, or `^a-z` for all others. Prepared for ASCII alone, which a host consists of: a Secret may hold classes of a
 * million characters.
 */
function classOf(text: string): Token | undefined {
  const negated = text.startsWith("^");
  const begin = negated ? 1 : 0;
  if (text.length === begin) return undefined;
  const members = new Uint8Array(asciiCount);
  for (let at = begin; at < text.length; at++) {
    const low = text.charCodeAt(at);
    if (text.charCodeAt(at + 1) === hyphen && at + 2 < text.length) at += 2;
    members.fill(1, low, text.charCodeAt(at) + 1);
  }
  return (character) => (members[character.charCodeAt(0)] === 1) !== negated;
}
