/**
 * Whether a registry name or pattern matches an image's repository (upstream's URLsMatch): same port, as many host
 * labels (with `*`, `?` and `[a-z]` within a label), and a path that is a prefix of the repository's. Pure.
 * @param pattern without a scheme: `*.example.org:5000/team`
 * @param repository with its registry: `docker.io/library/busybox`
 */
export function matchesRepository(pattern: string, repository: string): boolean {
  const [wanted, actual] = [splitPlace(pattern), splitPlace(repository)];
  const [patterns, parts] = [wanted.host.split("."), actual.host.split(".")];
  return (
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

/** `a-z0-9`, or `^a-z` for all others. */
function classOf(text: string): Token | undefined {
  const negated = text.startsWith("^");
  const ranges = [...text.slice(negated ? 1 : 0).matchAll(/(.)(?:-(.))?/gsu)].map(([, low = "", high = low]) => {
    return { low, high };
  });
  if (ranges.length === 0) return undefined;
  return (character) => ranges.some(({ low, high }) => low <= character && character <= high) !== negated;
}
