import * as http from "node:http";
import * as https from "node:https";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { HttpRequest, HttpResponse, Network } from "../../ports/network.ts";
import { errorMessage } from "../../base/errors.ts";
import { addressesOfName } from "./probe-names.ts";
import { readBody } from "../http/http-body.ts";

/** As Go's default client: the tenth request of a redirect chain is the last. */
const longestChain = 10;

/** Headers for the first host only: not sent to another host of a redirect. */
const privateHeaders = new Set(["authorization", "cookie", "cookie2", "proxy-authorization", "www-authenticate"]);

/** The proxy for a URL; undefined: none. */
export type ProxyFor = (url: URL) => URL | undefined;

/**
 * HTTP over this machine's network, with the behaviour of Go's client that manifest servers may rely on: redirects and
 * proxies.
 */
export function openNetwork(proxyFor: ProxyFor = () => undefined): Network {
  return { ...machineNetwork, httpGet: async (request) => await httpGet(request, proxyFor) };
}

const machineNetwork: Omit<Network, "httpGet"> = {
  addresses() {
    const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    return all.filter(({ internal, address }) => !internal && !isLinkLocal(address)).map(({ address }) => address);
  },

  interfaces() {
    return Object.entries(networkInterfaces()).map(([name, all = []]) => {
      const outer = all.filter(({ address }) => !isLinkLocal(address) && !isLoopbackAddress(address));
      return { name, addresses: outer.map(({ address }) => address) };
    });
  },

  async lookUp(name, signal) {
    const { addresses, code } = await addressesOfName(name, signal);
    if (addresses.length === 0) throw new Error(`no address of ${name} was found${code}`);
    return [...addresses];
  },
};

async function httpGet(request: HttpRequest, proxyFor: ProxyFor): Promise<HttpResponse> {
  request.signal.throwIfAborted();
  let url = parseUrl(request.url);
  let headers = request.headers;
  for (let sent = 1; ; sent++) {
    const answer = await getOnce(url, headers, request, proxyFor);
    if (answer.location === undefined) return answer;
    if (sent >= longestChain) throw new Error(`GET ${shown(url)}: stopped after ${longestChain} redirects`);
    const next = parseUrl(answer.location, url);
    if (!isSameOrSubdomain(next.hostname, url.hostname)) headers = withoutPrivate(headers);
    url = next;
  }
}

type Answer = HttpResponse & { readonly location: string | undefined };

async function getOnce(
  url: URL,
  headers: HttpRequest["headers"],
  request: HttpRequest,
  proxyFor: ProxyFor,
): Promise<Answer> {
  const { maxBytes, signal } = request;
  const client = url.protocol === "https:" ? https : http;
  // No keep-alive: manifests are fetched seldom, from servers that come and go.
  const proxy = proxyFor(url)?.href;
  const proxyEnv = proxy === undefined ? undefined : { HTTP_PROXY: proxy, HTTPS_PROXY: proxy };
  const agent = new client.Agent({ keepAlive: false, ...(proxyEnv && { proxyEnv }) });
  try {
    const outgoing = client.get(url, { agent, signal, headers: { "User-Agent": "podwright", ...copy(headers) } });
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      outgoing.once("response", resolve);
      outgoing.on("error", reject);
    });
    const status = response.statusCode ?? 0;
    const location = redirectLocation(status, response.headers.location);
    if (location !== undefined) {
      response.destroy();
      return { status, body: new Uint8Array(), location };
    }
    const tooLong = (): Error => new Error(`the body is longer than ${maxBytes} bytes`);
    return { status, body: new Uint8Array(await readBody(response, maxBytes, tooLong)), location };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new Error(`GET ${shown(url)}: ${errorMessage(error)}`, { cause: error });
  } finally {
    agent.destroy();
  }
}

/** The target of a redirect; undefined for other responses and for a redirect without a target. */
function redirectLocation(status: number, location: string | undefined): string | undefined {
  return [301, 302, 303, 307, 308].includes(status) && location !== "" ? location : undefined;
}

function parseUrl(text: string, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch (error) {
    throw new Error("the URL is not valid", { cause: error });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new Error(`the URL's scheme is ${url.protocol.slice(0, -1)}: use http or https`);
  }
  return url;
}

/** The URL without user, password and query, which may be secret. */
function shown(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

function copy(headers: HttpRequest["headers"]): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]]));
}

function withoutPrivate(headers: HttpRequest["headers"]): HttpRequest["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !privateHeaders.has(name.toLowerCase())));
}

function isSameOrSubdomain(host: string, of: string): boolean {
  return host === of || (isIP(of) === 0 && host.endsWith(`.${of}`));
}

function isLoopbackAddress(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

function isLinkLocal(address: string): boolean {
  return address.startsWith("169.254.") || /^fe[89ab]/i.test(address);
}
