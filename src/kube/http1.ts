import * as http from "node:http";
import * as https from "node:https";
import { hostOf } from "../base/host.ts";
import type { Clock } from "../ports/clock.ts";
import type { KubeRequest, KubeResponse } from "../ports/kube-api.ts";
import type { Identity } from "./credentials.ts";
import { connectionError } from "./connection-error.ts";
import { connectionsThrough, type Endpoint, tcpOptions, tlsOptions } from "./endpoint.ts";
import { proxyHeaders } from "./proxy.ts";

/** As many connections to the server as a lane may have: each carries one request or watch at a time. */
const maxSockets = 256;
/**
 * Without a byte for this long a connection that cannot be pinged is dead: requests have deadlines, and the server
 * sends each watch a bookmark about once a minute.
 */
const silentMs = 75_000;

/**
 * HTTP/1.1 with connections that are kept: for servers without TLS, and those that don't speak HTTP/2. A silent
 * connection cannot be checked: it is closed after a while, together with every idle one, which may be as dead. A
 * canceled request does the same.
 */
export class Http1Connections {
  readonly #endpoint: Endpoint;
  readonly #closed = new AbortController();
  readonly #agent: http.Agent;
  readonly #secure: boolean;
  readonly #limitMs: number;

  constructor(endpoint: Endpoint, identity: Identity, clock: Clock, limitMs = silentMs) {
    this.#endpoint = endpoint;
    this.#limitMs = limitMs;
    this.#secure = endpoint.url.protocol === "https:";
    const options = { keepAlive: true, maxSockets, scheduling: "lifo" } as const;
    this.#agent = this.#secure
      ? new https.Agent({ ...options, ...tlsOptions(endpoint, identity) })
      : new http.Agent({ ...options, ...tcpOptions(endpoint) });
    const { proxy } = endpoint;
    if (proxy) this.#agent.createConnection = connectionsThrough(proxy, endpoint, identity, clock, this.#closed.signal);
  }

  async send(request: KubeRequest, headers: Readonly<Record<string, string>>): Promise<KubeResponse> {
    const { url, proxy } = this.#endpoint;
    // A proxy passes on a request without TLS; one with TLS it does not see.
    const asked = proxy && !this.#secure ? { origin: url.origin, headers: proxyHeaders(proxy) } : { origin: "" };
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    let incoming: http.IncomingMessage | undefined;
    const outgoing = (this.#secure ? https : http).request(
      {
        ...urlParts(url),
        agent: this.#agent,
        method: request.method,
        path: `${asked.origin}${request.path}`,
        headers: { ...headers, ...asked.headers },
        signal: request.signal,
        timeout: this.#limitMs,
      },
      (response) => resolve((incoming = response)),
    );
    outgoing.on("error", reject);
    outgoing.once("timeout", () => {
      (incoming ?? outgoing).destroy(new Error(`no data received for ${this.#limitMs / 1000} s`));
    });
    outgoing.end(request.body);
    try {
      const response = await promise;
      return {
        status: response.statusCode ?? 0,
        headers: textHeaders(response.headers),
        body: this.#body(response, request.signal),
      };
    } catch (error) {
      this.#dropIdle();
      request.signal.throwIfAborted();
      throw connectionError(this.#endpoint, error);
    }
  }

  /** Current requests continue; no connection is kept for another. */
  retire(): void {
    this.#agent.maxFreeSockets = 0;
    this.#dropIdle();
  }

  close(): void {
    this.#closed.abort();
    this.#agent.destroy();
  }

  async *#body(response: http.IncomingMessage, signal: AbortSignal): AsyncIterable<Uint8Array> {
    try {
      for await (const chunk of response) if (chunk instanceof Uint8Array) yield chunk;
    } catch (error) {
      this.#dropIdle();
      signal.throwIfAborted();
      throw connectionError(this.#endpoint, error);
    } finally {
      response.destroy();
    }
  }

  #dropIdle(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}

function urlParts(url: URL): { hostname: string; port?: string } {
  return { hostname: hostOf(url), ...(url.port !== "" && { port: url.port }) };
}

/** Header values as one text each, names in lower case. */
export function textHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (Array.isArray(value)) texts[name.toLowerCase()] = value.join(", ");
    else if (typeof value === "string" || typeof value === "number") texts[name.toLowerCase()] = String(value);
  }
  return texts;
}
