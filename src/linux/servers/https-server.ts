import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import type { Duplex } from "node:stream";
import type { SecureVersion, TLSSocket } from "node:tls";
import { ExitCode, PodwrightError, errorMessage } from "../../base/errors.ts";
import type { ApiServer } from "../../ports/api-server.ts";
import type { NodeHandler } from "../../ports/node-server.ts";
import { plainError } from "../http/api-errors.ts";
import { clientAnchors, ClientCertificates } from "../certificates/client-certificate.ts";
import { answerClientErrors } from "../http/client-errors.ts";
import { systemClock } from "../processes/clock.ts";
import { ConnectionGuard, type ConnectionLimits } from "../http/connection-guard.ts";
import { Exchange, type ExchangeOptions, type Incoming } from "../http/http-exchange.ts";
import { changeProtocol, type UpgradeOptions, withoutUpgrade } from "../streams/protocol-change.ts";
import { type ListenAddress, listenOn } from "./listen.ts";

/** PEM texts. */
export interface TlsMaterial {
  /** Undefined: none yet, and every handshake fails. */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** The authorities of client certificates; undefined: none. */
  readonly clientAuthorities: string | undefined;
}

export interface HttpsServerOptions extends ExchangeOptions, UpgradeOptions, ListenAddress {
  readonly minVersion: SecureVersion;
  /** OpenSSL names joined by colons; undefined: Node.js's default. */
  readonly ciphers: string | undefined;
  /** Key exchange groups, likewise. */
  readonly curves?: string | undefined;
  /** Default: {@link defaultServingLimits}. */
  readonly limits?: Partial<ServingLimits>;
}

/** Limits for clients that are not authenticated yet. */
export interface ServingLimits extends ConnectionLimits {
  /** For HTTP/1.1; HTTP/2 has a lower limit ({@link http2HeaderBytes}). */
  readonly headerBytes: number;
  /** From the beginning of a request to the end of its headers, in milliseconds. */
  readonly headersMs: number;
  readonly handshakeMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** Between requests. */
  readonly idleMs: number;
  /** Concurrent requests on one HTTP/2 connection. */
  readonly streams: number;
}

export interface HttpsServer extends ApiServer {
  /**
   * Applies to new connections. Existing ones stay open; their clients stay identified only if the new authorities also
   * trust them.
   * @throws for an invalid certificate or key
   */
  useTls(material: TlsMaterial): void;
}

/** Upstream's MaxHeaderBytes, ReadTimeout, IdleTimeout and streams; upstream has no other limits. */
export const defaultServingLimits: ServingLimits = {
  connections: 4096,
  pendingBytes: 64 * 1024 * 1024,
  headerBytes: 1024 * 1024,
  headersMs: 30_000,
  handshakeMs: 10_000,
  requestMs: 4 * 3600_000,
  idleMs: 90_000,
  streams: 250,
};
const closeGraceMs = 1_000;
/**
 * nghttp2 treats a longer value as a broken connection: it ends without a status, with all responses in progress.
 * Clients that know the limit, such as Go's, do not send such a request; from others, only the request itself is
 * rejected.
 */
const http2HeaderBytes = 64 * 1024;
/** As Go: the only way to notice a vanished client that only listened. */
const keepAliveMs = 15_000;
/** Go's response to a client that used http instead of https. */
const withoutTls = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/** Node.js's limit for HTTP/1.1; for HTTP/2 its default is 128. */
const headerLines = 2000;

/**
 * Serves HTTP/1.1 with upgrades and HTTP/2 over TLS. Client certificates are requested but not required: the handler
 * decides about them.
 * @throws PodwrightError (environment) when the address is not available, (bad input) for invalid TLS material
 */
export async function serveHttps(
  handler: NodeHandler,
  material: TlsMaterial,
  options: HttpsServerOptions,
): Promise<HttpsServer> {
  const closing = new AbortController();
  const exchange = { errorAnswer: plainError, ...options };
  const limits = { ...defaultServingLimits, ...options.limits };
  const server = openServer(material, options, limits);
  const guard = new ConnectionGuard(server, limits);
  const clients = new ClientCertificates(material.clientAuthorities, () => systemClock.now());
  const certified = (incoming: Incoming): NodeHandler => {
    const certificate = clients.of(tlsSocketOf(incoming));
    return async (request) => await handler({ ...request, certificate });
  };
  server.on("request", (incoming, outgoing) => {
    const active = guard.begin(tlsSocketOf(incoming));
    outgoing.once("close", () => active[Symbol.dispose]());
    const answer = withoutUpgrade(certified(incoming), incoming);
    void new Exchange(incoming, outgoing, exchange).run(answer, closing.signal);
  });
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ERR_SSL_HTTP_REQUEST") guard.socketOf(socket)?.end(withoutTls);
  });
  server.on("upgrade", (incoming: IncomingMessage, client: Duplex, head: Buffer) => {
    const active = guard.begin(tlsSocketOf(incoming));
    client.once("close", () => active[Symbol.dispose]());
    void changeProtocol({ incoming, client, head }, certified(incoming), exchange, closing.signal);
  });
  const { address } = await listenOn(server, options);
  const close = async (): Promise<void> => {
    closing.abort(new Error("the server is closing"));
    const closed = once(server, "close");
    server.close();
    using _grace = systemClock.timer(`requests at ${address} to end`, closeGraceMs, () => {
      for (const socket of guard.sockets) socket.destroy();
    });
    await closed;
    guard[Symbol.dispose]();
  };
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= close());
  return {
    address,
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
    useTls: (next) => {
      server.setSecureContext(secureContext(next, options));
      clients.use(next.clientAuthorities);
    },
  };
}

function openServer(material: TlsMaterial, options: HttpsServerOptions, limits: ServingLimits): Http2SecureServer {
  // Node.js accepts them here as well as for an HTTP/1.1 server; the types lack them.
  const http1 = {
    maxHeaderSize: limits.headerBytes,
    requestTimeout: limits.requestMs,
    headersTimeout: limits.headersMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(limits.headersMs, 5000),
  };
  try {
    const server = createSecureServer({
      ...secureContext(material, options),
      allowHTTP1: true,
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: limits.handshakeMs,
      ...http1,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
      // Rapid resets (CVE-2023-44487) end the session; Node.js counts them itself.
      settings: {
        maxConcurrentStreams: limits.streams,
        maxHeaderListSize: Math.min(limits.headerBytes, http2HeaderBytes),
      },
      maxHeaderListPairs: headerLines,
    });
    answerClientErrors(server);
    server.on("session", (session) => session.setTimeout(limits.idleMs, () => session.close()));
    return server;
  } catch (error) {
    const reason = errorMessage(error);
    throw new PodwrightError(ExitCode.badInput, `cannot use the serving certificate: ${reason}`, { cause: error });
  }
}

function secureContext({ certificate, key, clientAuthorities }: TlsMaterial, options: HttpsServerOptions) {
  const { minVersion, ciphers, curves } = options;
  return {
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    // An empty list rather than undefined, which would trust the system's authorities for clients.
    ca: clientAnchors(clientAuthorities),
    minVersion,
    ...(ciphers !== undefined && { ciphers }),
    ...(curves !== undefined && { ecdhCurve: curves }),
  };
}

/** For HTTP/2 a proxy object, whose properties the types hide. */
function tlsSocketOf(incoming: Incoming): TLSSocket | undefined {
  const socket = "stream" in incoming ? incoming.stream.session?.socket : incoming.socket;
  return socket as TLSSocket | undefined;
}
