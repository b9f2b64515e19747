import { BlockList, isIP, isIPv4 } from "node:net";
import { domainToASCII } from "node:url";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { hostOf } from "../base/host.ts";

/** The machine itself: Go uses no environment proxy for it. */
const loopback = ["127.0.0.0/8", "::1/128"];

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy to the API server: the kubeconfig's for every server, else the environment's. Pure.
 * @param access `server` and `proxyUrl` of a kubeconfig that was read
 * @throws PodwrightError as {@link environmentProxy}
 */
export function proxyOf(
  { server, proxyUrl }: { readonly server: string; readonly proxyUrl?: string },
  environment: Environment,
): URL | undefined {
  return proxyUrl === undefined ? environmentProxy(new URL(server), environment) : new URL(proxyUrl);
}

/**
 * The environment's proxy to a server by Go's rules. Pure.
 * @param environment HTTPS_PROXY (HTTP_PROXY for a server without TLS) and NO_PROXY count, also in lower case
 * @throws PodwrightError (bad input) naming the variable, never its value
 */
export function environmentProxy(server: URL, environment: Environment): URL | undefined {
  const upper = server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const variable = environment[upper] ? upper : upper.toLowerCase();
  const text = environment[variable];
  if (!text || isExempt(server, environment["NO_PROXY"] || environment["no_proxy"] || "")) return undefined;
  const proxy = parseProxy(text.includes("://") ? text : `http://${text}`);
  if (proxy instanceof URL) return proxy;
  throw new PodwrightError(ExitCode.badInput, `${variable} of the environment: ${proxy}`, {
    remedy: `set it to the URL of an HTTP proxy, or add ${server.hostname} to NO_PROXY`,
  });
}

/** The proxy's URL, or what is wrong with the text, of which nothing is shown: there may be a password in it. Pure. */
export function parseProxy(text: string): URL | string {
  const url = URL.parse(text);
  if (url?.protocol.startsWith("socks")) {
    return "SOCKS is not supported: use an HTTP proxy (http:// or https://, with CONNECT)";
  }
  if (url === null || !/^https?:$/u.test(url.protocol)) return "is not an http or https URL";
  try {
    proxyHeaders(url);
  } catch {
    return "user and password must be percent-encoded";
  }
  return url;
}

/** The proxy without its credentials. */
export function proxyName({ protocol, host }: URL): string {
  return `${protocol}//${host}`;
}

/** The proxy's credentials. */
export function proxyHeaders({ username, password }: URL): Record<string, string> {
  if (username === "" && password === "") return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}` };
}

function isExempt(server: URL, noProxy: string): boolean {
  const host = hostOf(server);
  const port = server.port || (server.protocol === "https:" ? "443" : "80");
  if (host === "localhost" || loopback.some((range) => isInRange(host, range))) return true;
  return noProxy.split(",").some((rule) => exempts(rule.trim().toLowerCase(), host, port));
}

/** @param rule of NO_PROXY: `*`, a range of addresses, or an address or a domain, perhaps with a port */
function exempts(rule: string, host: string, port: string): boolean {
  if (rule === "*") return true;
  if (rule.includes("/")) return isInRange(host, rule);
  // An IPv6 address has a port only in brackets.
  const [, bracketed, plain, rulePort] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/u.exec(rule) ?? [];
  const name = bracketed ?? plain ?? rule;
  if (rulePort !== undefined && rulePort !== port) return false;
  if (isIP(name) !== 0) return isInRange(host, `${name}/${isIPv4(name) ? 32 : 128}`);
  // A domain with a dot in front stands for what is below it alone.
  const bare = name.replace(/^\*?\./u, "");
  const domain = domainToASCII(bare) || bare;
  return domain !== "" && (host.endsWith(`.${domain}`) || (bare === name && host === domain));
}

function isInRange(host: string, range: string): boolean {
  const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/u.exec(range) ?? [];
  if (isIP(host) === 0 || isIP(address) === 0 || Number(bits) > (isIPv4(address) ? 32 : 128)) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(bits), isIPv4(address) ? "ipv4" : "ipv6");
  return list.check(host, isIPv4(host) ? "ipv4" : "ipv6");
}
