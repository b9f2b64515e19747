/**
 * URLs as Go's net/url reads them (Go 1.26): paths of probes and hooks, and where answers redirect to, mean what they mean
 * to Kubernetes. WHATWG's URL, which Node.js has, reads many of them otherwise: a backslash, a space, `//` in front.
 *
 * Every text here is bytes: a character for each, as {@link bytesOf} makes them.
 */
export interface GoUrl {
  /** In lower case; empty: the URL is relative. */
  readonly scheme: string;
  /** What follows the scheme of a URL without a slash (`mailto:x`); such a URL has neither host nor path. */
  readonly opaque: string;
  /** `name:password`, decoded; undefined: the URL names no user. */
  readonly user: string | undefined;
  /** With its port, as written; empty: none. */
  readonly host: string;
  /** As a request line has it: what must be escaped there, is. */
  readonly path: string;
  /** As written, without its `?`; undefined: none. */
  readonly query: string | undefined;
}

/** The bytes of a text, a character for each. Halves of surrogate pairs become U+FFFD, as in Go. */
export function bytesOf(text: string): string {
  return Buffer.from(text.toWellFormed()).toString("latin1");
}

const controlCharacter = /[\u0000-\u001f\u007f]/;
const brokenEscape = /%(?![0-9a-f]{2})/i;
const escape = /%([0-9a-f]{2})/gi;
/** Whatever of a path must be escaped. */
const escapedInPath = /[^\w$&+,\-./:;=@~]/g;
/** A path of these characters alone is not escaped. */
const writtenPath = /^(?:[\w!$&'()*+,\-./:;=@[\]~]|%[0-9a-f]{2})*$/i;
const scheme = /^([a-z][a-z0-9+.-]*):/i;
const userInfo = /^(?:[\w\-.:~!$&'()*+,;=@]|%[0-9a-f]{2})*$/i;
/** Of ASCII only a percent sign may be escaped in a host. */
const hostName = /^(?:[\w!"$&'()*+,\-.:;<=>\]~\u0080-\u00ff]|%25|%[89a-f][0-9a-f])*$/i;
const literalHost = /^\[([^%]*)(?:%25([^\]]*))?\](?::\d*)?$/;
const zone = /^(?:[\w!"$&'()*+,\-.:;<=>~\u0080-\u00ff]|%[0-9a-f]{2})+$/i;

/** @returns undefined for what Go refuses */
export function parseGoUrl(text: string): GoUrl | undefined {
  const hash = text.indexOf("#");
  const [whole, fragment] = hash === -1 ? [text, ""] : [text.slice(0, hash), text.slice(hash + 1)];
  if (controlCharacter.test(whole) || brokenEscape.test(fragment)) return undefined;
  const named = scheme.exec(whole);
  // A colon at the begin is a scheme without a name.
  if (whole.startsWith(":")) return undefined;
  const name = named?.[1]?.toLowerCase() ?? "";
  const [rest, query] = cut(whole.slice(named?.[0].length ?? 0), "?");
  const relative = { scheme: name, opaque: "", user: undefined, host: "", query };
  if (!rest.startsWith("/")) {
    if (name !== "") return { ...relative, opaque: rest, path: "" };
    // It could be an invalid scheme.
    if (cut(rest, "/")[0].includes(":")) return undefined;
  }
  if (!rest.startsWith("//") || (name === "" && rest.startsWith("///"))) return withPath(relative, rest);
  const slash = rest.indexOf("/", 2);
  const authority = parseAuthority(rest.slice(2, slash === -1 ? undefined : slash), name);
  return authority && withPath({ ...relative, ...authority }, slash === -1 ? "" : rest.slice(slash));
}

/** A path whatever is in it, as Kubernetes takes one that is no URL. */
export function asPath(text: string): GoUrl {
  return { scheme: "", opaque: "", user: undefined, host: "", path: escapePath(text), query: undefined };
}

/** Resolves a reference against `base` (RFC 3986, 5.2), which has a scheme and a host. */
export function resolveGoUrl(base: GoUrl, reference: GoUrl): GoUrl {
  const whole = { ...reference, scheme: reference.scheme || base.scheme };
  if (reference.scheme !== "" || reference.host !== "" || reference.user !== undefined) {
    return { ...whole, path: withoutDots(reference.path) };
  }
  const { host, user } = base;
  const path = reference.path === "" ? base.path : join(base.path, reference.path);
  const query = reference.path === "" && reference.query === undefined ? base.query : reference.query;
  return { ...whole, host, user, path: withoutDots(path), query };
}

/** The target of a request line. */
export function requestTarget({ path, query }: GoUrl): string {
  return `${path.startsWith("/") ? "" : "/"}${path}${query === undefined ? "" : `?${query}`}`;
}

/** The host that a URL names, decoded and without brackets, empty for none, and the port that it means, which may be none. */
export function hostAndPort({ host, scheme: of }: GoUrl): { readonly host: string; readonly port: number } {
  const [, literal, name = "", port = ""] = /^(?:\[(.*)\]|(.*?))(?::(\d*))?$/.exec(host) ?? [];
  return { host: decode(literal ?? name), port: port === "" ? (of === "https" ? 443 : 80) : Number(port) };
}

/** Where a request goes, in the words of a URL: an IPv6 address stands in brackets. */
export function authorityOf(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True for a valid host: a name, or an address without brackets, whose zone follows a percent sign. */
export function isHost(host: string): boolean {
  const written = host.replaceAll("%", "%25");
  return host !== "" && (host.includes(":") ? isLiteral(`[${written}]`) : hostName.test(written));
}

function withPath(url: Omit<GoUrl, "path">, path: string): GoUrl | undefined {
  if (brokenEscape.test(path)) return undefined;
  return { ...url, path: writtenPath.test(path) ? path : escapePath(decode(path)) };
}

function parseAuthority(text: string, of: string): Pick<GoUrl, "user" | "host"> | undefined {
  const at = text.lastIndexOf("@");
  const host = text.slice(at + 1);
  if (!(host.startsWith("[") ? isLiteral(host) : isNameAndPort(host, of))) return undefined;
  if (at === -1) return { user: undefined, host };
  const user = text.slice(0, at);
  if (!userInfo.test(user)) return undefined;
  return { user: decode(user.includes(":") ? user : `${user}:`), host };
}

/** Go takes further colons before the one of the port, as databases write lists of hosts, only of schemes that it does not know. */
function isNameAndPort(host: string, of: string): boolean {
  const isWeb = of === "http" || of === "https";
  const colon = isWeb ? host.indexOf(":") : host.lastIndexOf(":");
  const port = colon === -1 ? "" : host.slice(colon + 1);
  return !host.includes("[") && /^\d*$/.test(port) && hostName.test(host);
}

/** An IPv6 address in brackets, with its zone (RFC 6874). */
function isLiteral(host: string): boolean {
  const [, address = "", named] = literalHost.exec(host) ?? [];
  if (named !== undefined && !zone.test(named)) return false;
  return address.includes(":") && URL.canParse(`http://[${address}]`);
}

function escapePath(path: string): string {
  const hex = (byte: string): string => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  return path.replaceAll(escapedInPath, hex);
}

function decode(text: string): string {
  return text.replaceAll(escape, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function cut(text: string, at: string): [before: string, after: string | undefined] {
  const index = text.indexOf(at);
  return index === -1 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)];
}

function join(base: string, reference: string): string {
  return reference.startsWith("/") ? reference : base.slice(0, base.lastIndexOf("/") + 1) + reference;
}

/** Without `.` and `..` (RFC 3986, 5.2.4); empty segments count as Go counts them. */
function withoutDots(path: string): string {
  if (path === "") return "";
  const kept: string[] = [];
  const parts = path.split("/");
  for (const part of parts) {
    if (part === "..") {
      kept.pop();
      if (kept.length === 1 && kept[0] === "") kept.pop();
    } else if (part !== ".") {
      kept.push(part);
    }
  }
  if (/(?:^|\/)\.\.?$/.test(path)) kept.push("");
  return `/${kept.join("/")}`.replace(/^\/\//, "/");
}
