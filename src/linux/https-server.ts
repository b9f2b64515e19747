import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SecureVersion, TLSSocket } from "node:tls";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { ApiRequest, ApiResponse, ApiServer } from "../ports/api-server.ts";
import type { ClientCertificate, NodeHandler, NodeRequest } from "../ports/node-server.ts";
import { errorResponse } from "./api-errors.ts";
import { systemClock } from "./clock.ts";
import { errnoOf } from "./file-error.ts";
import { Exchange, type ExchangeOptions, type Incoming } from "./http-exchange.ts";
import { answerRaw, forwardUpgrade } from "./http-upgrade.ts";

/** PEM texts. */
export interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  /** Whose client certificates are taken; undefined: nobody's. */
  readonly clientAuthorities: string | undefined;
}

export interface HttpsServerOptions extends ExchangeOptions {
  readonly host: string;
  readonly port: number;
  readonly minVersion: SecureVersion;
  /** OpenSSL's names, joined by colons; undefined: Node.js's own choice. */
  readonly ciphers: string | undefined;
  /** A streaming connection on which nothing passes for so long is ended, in milliseconds. */
  readonly streamingIdleMs: number;
}

export interface HttpsServer extends ApiServer {
  /** New connections are made with these; those that there are go on. @throws when the texts are no certificate or key */
  useTls(material: TlsMaterial): void;
}

/** Upstream's ReadTimeout for a whole request, IdleTimeout and MaxHeaderBytes. */
const requestLimitMs = 4 * 3600_000;
const idleLimitMs = 90_000;
const maxHeaderBytes = 1024 * 1024;
/** A client that has not sent its headers by then never will. */
const headersLimitMs = 30_000;
const handshakeLimitMs = 10_000;
const maxConnections = 4096;
const closeGraceMs = 1_000;

/**
 * Serves HTTP/1.1 with upgrades and HTTP/2 over TLS. Client certificates are asked for and never required: who the
 * client is, and whether that suffices, is the handler's to say.
 * @throws PodwrightError (environment) when the address can't be had, (bad input) when the TLS material is none
 */
export async function serveHttps(
  handler: NodeHandler,
  material: TlsMaterial,
  options: HttpsServerOptions,
): Promise<HttpsServer> {
  const closing = new AbortController();
  const server = openServer(material, options);
  const connections = track(server);
  let current = material;
  const answer = (incoming: Incoming, upgrade: boolean) => {
    return async (base: ApiRequest): Promise<ApiResponse> => {
      const result = await handler(nodeRequest(base, incoming, upgrade, current));
      return "forwardTo" in result ? upgradeRequired : result;
    };
  };
  server.on("request", (incoming, outgoing) => {
    void new Exchange(incoming, outgoing, options).run(answer(incoming, false), closing.signal);
  });
  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => {});
    // From here on a client may have sent all of its input and still wait for output.
    socket.allowHalfOpen = true;
    void changeProtocol({ incoming, client: socket, head }, handler, current, options, closing.signal);
  });
  const address = await listen(server, options);
  const close = async (): Promise<void> => {
    closing.abort(new Error("the server is closing"));
    const closed = once(server, "close");
    server.close();
    using _grace = systemClock.timer(`requests at ${address} to end`, closeGraceMs, () => {
      for (const socket of connections) socket.destroy();
    });
    await closed;
  };
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= close());
  return {
    address,
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
    useTls: (next) => {
      server.setSecureContext(secureContext(next, options));
      current = next;
    },
  };
}

/** Node.js takes them here as well as for a server of HTTP/1.1 alone; the types do not say so. */
const http1Limits = {
  maxHeaderSize: maxHeaderBytes,
  requestTimeout: requestLimitMs,
  headersTimeout: headersLimitMs,
  keepAliveTimeout: idleLimitMs,
};

const upgradeRequired: ApiResponse = {
  status: 400,
  contentType: "text/plain; charset=utf-8",
  body: "unable to upgrade: this needs a connection that asks for SPDY/3.1 or WebSocket\n",
};

function openServer(material: TlsMaterial, options: HttpsServerOptions): Http2SecureServer {
  try {
    const server = createSecureServer({
      ...secureContext(material, options),
      allowHTTP1: true,
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: handshakeLimitMs,
      ...http1Limits,
      // Rapid resets (CVE-2023-44487) end the session; Node.js counts them by itself.
      settings: { maxConcurrentStreams: 250, maxHeaderListSize: maxHeaderBytes },
    });
    server.on("session", (session) => session.setTimeout(idleLimitMs, () => session.close()));
    return server;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PodwrightError(ExitCode.badInput, `the serving certificate can't be used: ${reason}`, { cause: error });
  }
}

function secureContext({ certificate, key, clientAuthorities }: TlsMaterial, options: HttpsServerOptions) {
  const { minVersion, ciphers } = options;
  return {
    cert: certificate,
    key,
    // An empty list rather than none: without one the system's authorities would vouch for clients.
    ca: clientAuthorities ?? [],
    minVersion,
    ...(ciphers !== undefined && { ciphers }),
  };
}

/** The open connections; more than there may be are turned away. */
function track(server: Http2SecureServer): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    if (connections.size >= maxConnections) {
      socket.destroy();
      return;
    }
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    // Broken handshakes and resets are the clients' affair.
    socket.on("error", () => {});
  });
  return connections;
}

async function listen(server: Http2SecureServer, { host, port }: HttpsServerOptions): Promise<string> {
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (error) {
    const reason = errnoOf(error) ?? String(error);
    throw new PodwrightError(ExitCode.environment, `can't listen on ${host}:${port}: ${reason}`, { cause: error });
  }
  const address = server.address();
  return `${host}:${typeof address === "object" && address !== null ? address.port : port}`;
}

async function changeProtocol(
  connection: { readonly incoming: IncomingMessage; readonly client: Duplex; readonly head: Buffer },
  handler: NodeHandler,
  material: TlsMaterial,
  options: HttpsServerOptions,
  signal: AbortSignal,
): Promise<void> {
  const { incoming, client } = connection;
  const path = incoming.url ?? "/";
  try {
    const base = upgradeBase(incoming, signal);
    const result = await handler(nodeRequest(base, incoming, true, material));
    if ("forwardTo" in result) await forwardUpgrade(connection, result.forwardTo, options.streamingIdleMs, signal);
    else await answerRaw(client, result);
  } catch (error) {
    if (!(error instanceof PodwrightError)) options.onError?.(error, { method: incoming.method ?? "GET", path });
    await answerRaw(client, errorResponse(error));
  }
}

function upgradeBase(incoming: IncomingMessage, signal: AbortSignal): ApiRequest {
  const [path = "/", query = ""] = (incoming.url ?? "/").split("?", 2);
  return {
    method: incoming.method ?? "GET",
    path,
    query: new URLSearchParams(query),
    body: async () => "",
    signal,
  };
}

function nodeRequest(base: ApiRequest, incoming: Incoming, upgrade: boolean, material: TlsMaterial): NodeRequest {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    headers[name] = typeof value === "string" ? value : value?.join(", ");
  }
  const certificate = material.clientAuthorities === undefined ? undefined : clientCertificate(incoming);
  return { ...base, headers, certificate, upgrade };
}

function clientCertificate(incoming: Incoming): ClientCertificate | undefined {
  const socket = tlsSocketOf(incoming);
  if (socket?.authorized !== true) return undefined;
  const { subject } = socket.getPeerCertificate();
  const commonName = first(subject?.CN);
  if (commonName === undefined) return undefined;
  return { commonName, organizations: all(subject.O) };
}

/** Of HTTP/2 a stand-in for the socket, which has its properties but does not show them. */
function tlsSocketOf(incoming: Incoming): TLSSocket | undefined {
  const socket = "stream" in incoming ? incoming.stream.session?.socket : incoming.socket;
  return socket as TLSSocket | undefined;
}

function all(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return all(value)[0];
}
