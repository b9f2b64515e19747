import { connect, isIP, type Socket } from "node:net";
import * as tls from "node:tls";
import { onAbort } from "../../base/abort.ts";
import { errorMessage } from "../../base/errors.ts";
import { authorityOf, hostAndPort, parseGoUrl, requestTarget, resolveGoUrl } from "../../base/go-url.ts";
import { trimmed } from "../../base/trimmed.ts";
import {
  type HttpProbeAnswer,
  type HttpProbeRequest,
  type NetworkProbes,
  ProbeTargetError,
} from "../../ports/network-probes.ts";
import { HttpResponseReader, type ResponseHead } from "../http/http-response.ts";
import { HealthAnswerReader, healthRequest } from "./probe-grpc.ts";
import { probeAddress } from "./probe-names.ts";

const maxBodyBytes = 10 * 1024;
/** As Go's default client: the tenth request of a redirect chain is the last. */
const longestChain = 10;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Most responses arrive sooner: their exchange needs no second packet from this side. */
const replyDelayMs = 20;

/** The shared receive buffer of all plain connections: each read is processed before the next. */
const received = Buffer.allocUnsafeSlow(16 * 1024);

/** Probes over this machine's network. */
export const systemNetworkProbes: NetworkProbes = {
  httpGet,

  async tcpConnect(host, port, signal) {
    const socket = await open(host, port, signal);
    socket.resetAndDestroy();
  },

  async grpcHealth(host, port, service, signal) {
    const request = healthRequest(authorityOf(host, port), service);
    const address = await probeAddress(host, signal);
    signal.throwIfAborted();
    return await ask((onBytes) => dial(address, port, onBytes), request, new HealthAnswerReader(), signal);
  },
};

async function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const address = await probeAddress(host, signal);
  signal.throwIfAborted();
  const socket = connect({ host: address, port });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  using _abort = onAbort(signal, () => {
    socket.destroy();
    reject(signal.reason);
  });
  socket.once("connect", resolve);
  // Never removed: a socket that is being reset may still emit an error.
  socket.on("error", (error) => reject(targetError(error)));
  await promise;
  return socket;
}

async function httpGet(request: HttpProbeRequest, signal: AbortSignal): Promise<HttpProbeAnswer> {
  let current = request;
  for (let sent = 1; ; sent++) {
    const { head, body } = await getOnce(current, signal);
    const { status, location = "" } = head;
    const answer = { status, ...(body && { body }) };
    if (location === "" || !redirects.has(status)) return answer;
    const next = redirected(current, location);
    if (next.host !== request.host) return { ...answer, redirectedTo: quotable(next.host) };
    if (sent >= longestChain) throw new ProbeTargetError(`stopped after ${longestChain} redirects`);
    current = askable(next);
  }
}

/** One request over its own connection, without a proxy whatever the environment says. */
async function getOnce(request: HttpProbeRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const bytes = Buffer.from(requestText(request), "latin1");
  const address = await probeAddress(request.host, signal);
  signal.throwIfAborted();
  const { scheme, host, port } = request;
  const dialled = scheme === "https" ? dialTls : dial;
  return await ask((onBytes) => dialled(address, port, onBytes, host), bytes, new HttpAnswerReader(), signal);
}

interface HttpAnswer {
  readonly head: ResponseHead;
  readonly body: Uint8Array | undefined;
}

/** Assembles a response from a server's bytes. */
interface AnswerReader<T> {
  /** Returns the response once it is complete. `bytes` may be reused afterwards. */
  push(bytes: Buffer): T | undefined;
  /** The connection ended. */
  end(): T | undefined;
  /** Bytes to send back. */
  takeReplies?(): Buffer | undefined;
  /** Maps an error of the connection. */
  failed?(error: Error): Error;
}

/** Sends a request on its own connection and returns the response, or throws the reader's error. */
async function ask<T>(
  connected: (onBytes: (bytes: Buffer) => void) => Socket,
  request: Buffer,
  reader: AnswerReader<T>,
  signal: AbortSignal,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let isOver = false;
  let reply: NodeJS.Timeout | undefined;
  const tell = (): void => {
    reply = undefined;
    const replies = reader.takeReplies?.();
    if (replies !== undefined) socket.write(replies);
  };
  const take = (step: () => T | undefined): void => {
    if (isOver) return;
    try {
      const answer = step();
      if (answer !== undefined) return resolve(answer);
      if (reader.takeReplies !== undefined) reply ??= setTimeout(tell, replyDelayMs);
    } catch (error) {
      reject(error);
    }
  };
  const socket = connected((bytes) => take(() => reader.push(bytes)));
  using _abort = onAbort(signal, () => reject(signal.reason));
  socket.once("encrypted" in socket ? "secureConnect" : "connect", () => socket.write(request));
  socket.once("end", () => take(() => reader.end()));
  // Never removed: a socket that is being reset may still emit an error.
  socket.on("error", (error) => reject(reader.failed?.(error) ?? targetError(error)));
  socket.once("close", () => take(() => reader.end()));
  try {
    return await promise;
  } finally {
    isOver = true;
    clearTimeout(reply);
    release(socket);
  }
}

class HttpAnswerReader implements AnswerReader<HttpAnswer> {
  readonly #response = new HttpResponseReader(maxBodyBytes);

  push(bytes: Buffer): HttpAnswer | undefined {
    return this.#take(() => this.#response.push(bytes));
  }

  end(): HttpAnswer | undefined {
    return this.#take(() => this.#response.end());
  }

  failed(error: Error): Error {
    return this.#response.head === undefined ? targetError(error) : brokenAnswer(this.#response, error.message);
  }

  #take(step: () => void): HttpAnswer | undefined {
    try {
      step();
    } catch (error) {
      throw brokenAnswer(this.#response, errorMessage(error));
    }
    const { head, isComplete, bodyBytes } = this.#response;
    if (head === undefined || !(isComplete || bodyBytes >= maxBodyBytes)) return undefined;
    return { head, body: this.#response.body };
  }
}

function dial(address: string, port: number, onBytes: (bytes: Buffer) => void): Socket {
  const callback = (count: number): boolean => {
    onBytes(received.subarray(0, count));
    return true;
  };
  return connect({ host: address, port, onread: { buffer: received, callback } });
}

/** Certificates say nothing about health. The server name is the probed host, never a Host header. */
function dialTls(address: string, port: number, onBytes: (bytes: Buffer) => void, host: string): Socket {
  // SNI does not allow addresses.
  const servername = isIP(host) === 0 ? host : "";
  return tls.connect({ host: address, port, servername, rejectUnauthorized: false }).on("data", onBytes);
}

function requestText({ path, headers }: HttpProbeRequest): string {
  if (controlCharacter.test(path)) throw new TypeError("the path holds characters that a request line can't");
  let text = `GET ${path} HTTP/1.1\r\n`;
  for (const [name, value] of headers) {
    if (!headerName.test(name)) throw new ProbeTargetError(`invalid header field name ${JSON.stringify(name)}`);
    if (controlCharacter.test(value.replaceAll("\t", ""))) {
      throw new ProbeTargetError(`invalid header field value for ${JSON.stringify(name)}`);
    }
    text += `${name}: ${trimmed(value, " \t")}\r\n`;
  }
  return `${text}${isLast(headers) ? "" : "Connection: close\r\n"}\r\n`;
}

const controlCharacter = /[\u0000-\u001f\u007f]/;
const headerName = /^[\w!#$%&'*+\-.^`|~]+$/;

/** True for headers that announce the last request or another protocol. */
function isLast(headers: HttpProbeRequest["headers"]): boolean {
  const connection = headers.filter(([name]) => name === "Connection").flatMap(([, value]) => value.split(","));
  const says = (token: string): boolean => connection.some((given) => given.trim().toLowerCase() === token);
  return says("close") || (says("upgrade") && headers.some(([name]) => name === "Upgrade"));
}

/** Before the headers this is the target's fault; afterwards it says nothing about the status. */
function brokenAnswer(reader: HttpResponseReader, problem: string): Error {
  if (reader.head === undefined) return new ProbeTargetError(problem);
  return new Error(`the response body ended early: ${problem}`);
}

/** Avoids TIME_WAIT by resetting plain TCP connections; TLS ones close normally. */
function release(socket: Socket): void {
  // Resetting a socket that is already ending fails and leaves it open.
  if ("encrypted" in socket || socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

type Redirected = Omit<HttpProbeRequest, "scheme"> & { readonly scheme: string };

/** The request for a redirect. The pod's own Host header stays while the redirect names no scheme. */
function redirected(from: HttpProbeRequest, location: string): Redirected {
  const base = parseGoUrl(`${from.scheme}://${authorityOf(from.host, from.port)}${from.path}`);
  const reference = parseGoUrl(location);
  if (base === undefined || reference === undefined) {
    throw new ProbeTargetError("redirected to an invalid URL");
  }
  const url = resolveGoUrl(base, reference);
  const headers = from.headers.map(([name, value]) =>
    name === "Host" && reference.scheme !== "" ? ([name, url.host] as const) : ([name, value] as const),
  );
  return { scheme: url.scheme, ...hostAndPort(url), path: requestTarget(url), headers };
}

/** A DNS name has no more characters. */
const longestQuoted = 253;

/**
 * A part of a redirect's URL for messages. A longer one is not cut: a Secret of which only the beginning is left would not
 * be recognised.
 */
function quotable(text: string): string {
  return text.length <= longestQuoted ? text : `(${text.length} characters)`;
}

/** @throws ProbeTargetError for an invalid target */
function askable(request: Redirected): HttpProbeRequest {
  const { scheme, port } = request;
  if (scheme !== "http" && scheme !== "https") {
    throw new ProbeTargetError(`redirected to a URL of scheme ${quotable(scheme)}`);
  }
  if (!(port > 0 && port < 65_536)) throw new ProbeTargetError(`redirected to invalid port ${port}`);
  return { ...request, scheme };
}

const explained: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset by the container",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "the network is unreachable",
  EPIPE: "connection closed by the container",
};

const sslCode = "ERR_SSL_";

function targetError(error: Error): ProbeTargetError {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER") {
    return new ProbeTargetError("the response is not TLS", { cause: error, plainText: true });
  }
  if (code.startsWith(sslCode)) {
    // OpenSSL's message contains its source locations.
    const problem = code.slice(sslCode.length).toLowerCase().replaceAll("_", " ");
    return new ProbeTargetError(`TLS failed: ${problem}`, { cause: error });
  }
  return new ProbeTargetError(explained[code] ?? error.message, { cause: error });
}
