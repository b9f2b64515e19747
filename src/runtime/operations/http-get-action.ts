import { domainToASCII } from "node:url";
import type { ContainerPort } from "../../api/container.ts";
import type { HttpGetAction } from "../../api/volume.ts";
import { asPath, authorityOf, bytesOf, isHost, parseGoUrl, requestTarget } from "../../base/go-url.ts";
import { type HttpProbeRequest, ProbeTargetError } from "../../ports/network-probes.ts";

type Header = readonly [name: string, value: string];

/** Resolves a port that may be a name. @throws Error when the container has no port of that name */
export function resolvePort(port: number | string, ports: readonly ContainerPort[]): number {
  const named = ports.find(({ name }) => name !== undefined && name === port)?.containerPort;
  const number = named ?? Number(port);
  if (typeof port === "string" && named === undefined && !/^\d+$/.test(port)) {
    throw new Error(`the container has no port named "${port}"`);
  }
  if (!(number > 0 && number < 65_536)) throw new Error(`invalid port number: ${port}`);
  return number;
}

/**
 * The request of a pod's httpGet action (upstream: NewRequestForHTTPGetAction). A path that is a URL contributes its
 * path, query and user; one that Go cannot parse is used as a path.
 * @param host default host: the pod's address
 * @throws Error for an unknown port name, or an invalid host
 * @throws ProbeTargetError for a path without a host (`mailto:x`)
 */
export function httpGetRequest(
  action: HttpGetAction,
  ports: readonly ContainerPort[],
  host: string,
  userAgent: string,
): HttpProbeRequest {
  const target = action.host || host;
  const port = resolvePort(action.port, ports);
  if (!isHost(bytesOf(target))) throw new Error(`invalid host ${JSON.stringify(target)}: name a host or an address`);
  const path = bytesOf(action.path ?? "");
  const url = parseGoUrl(path) ?? asPath(path);
  if (url.opaque !== "") {
    throw new ProbeTargetError("no Host in request URL: the path begins with a scheme; begin it with a slash");
  }
  const given = (action.httpHeaders ?? []).map(({ name, value }) => [canonicalName(name), bytesOf(value)] as const);
  return {
    scheme: (action.scheme ?? "").toLowerCase() === "https" ? "https" : "http",
    host: asciiHost(target),
    port,
    path: requestTarget(url),
    headers: requestHeaders(given, authorityOf(bytesOf(target), port), userAgent, url.user),
  };
}

/** In Go's order: the request's own headers first, body framing never, the rest by name. */
function requestHeaders(
  given: readonly Header[],
  authority: string,
  userAgent: string,
  user: string | undefined,
): readonly Header[] {
  const first = (wanted: string): string | undefined => given.find(([name]) => name === wanted)?.[1];
  const agent = first("User-Agent") ?? userAgent;
  const others = given.filter(
    // An empty Accept header removes the default and is not sent.
    ([name]) => !sentApart.has(name) && !(name === "Accept" && first("Accept") === ""),
  );
  if (first("Accept") === undefined) others.push(["Accept", "*/*"]);
  const isKnown = user === undefined || (first("Authorization") ?? "") !== "";
  const authorization: Header[] = isKnown ? [] : [["Authorization", basic(user)]];
  const kept = isKnown ? others : others.filter(([name]) => name !== "Authorization");
  return [
    ["Host", hostHeader(first("Host") || authority)],
    ...(agent === "" ? [] : [["User-Agent", agent] as const]),
    ...[...kept, ...authorization].toSorted(([one], [other]) => (one < other ? -1 : Number(one > other))),
  ];
}

const sentApart: ReadonlySet<string> = new Set([
  "Host",
  "User-Agent",
  "Content-Length",
  "Transfer-Encoding",
  "Trailer",
]);

function basic(user: string): string {
  return `Basic ${Buffer.from(user, "latin1").toString("base64")}`;
}

/** `x-a` as `X-A`. An invalid name is not changed. */
function canonicalName(name: string): string {
  if (!/^[\w!#$%&'*+\-.^`|~]+$/.test(name)) return name;
  return name.toLowerCase().replaceAll(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
}

/**
 * The value of the Host header; invalid parts are dropped, except control characters, which are rejected. An address's
 * zone has no meaning for the peer.
 */
function hostHeader(text: string): string {
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(text)) return text;
  const [, host = "", port = ""] = /^(.*?)((?::\d*)?)$/.exec(text) ?? [];
  const ascii = asciiHost(Buffer.from(host, "latin1").toString()) + port;
  if (!/^[\w!$%&'()*+,\-.:;=[\]~]*$/.test(ascii)) return "";
  return ascii.replace(/^\[([^%\]]*)%[^\]]*\]/, "[$1]");
}

/** Internationalized names in their DNS form. */
function asciiHost(host: string): string {
  return /[\u0080-\uffff]/.test(host) ? domainToASCII(host) : host;
}
