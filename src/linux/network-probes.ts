import { validateHeaderName, validateHeaderValue } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import * as tls from "node:tls";
import { hostOf } from "../base/host.ts";
import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import {
  type HttpProbeAnswer,
  type HttpProbeRequest,
  type NetworkProbes,
  ProbeTargetError,
} from "../ports/network-probes.ts";
import { HttpResponseReader, type ResponseHead } from "./http-response.ts";
import { HealthAnswerReader, healthRequest } from "./probe-grpc.ts";
import { probeAddress } from "./probe-names.ts";

const maxBodyBytes = 10 * 1024;
/** As Go's default client does: the tenth request of a chain is the last. */
const longestChain = 10;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Most answers come before this: they take no second packet from this side. */
const replyDelayMs = 20;

/** What every plain connection reads into: it is looked at before the next one reads. */
const received = Buffer.allocUnsafeSlow(16 * 1024);

/** Probes over this machine's network. */
export const systemNetworkProbes: NetworkProbes = {
  httpGet,

  async tcpConnect(host, port, signal) {
    const socket = await open(host, port, signal);
    socket.resetAndDestroy();
  },

  async grpcHealth(host, port, service, signal) {
    const request = healthRequest(authority(host, port), service);
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
  // Stays: a socket that is being reset may still report an error that nobody waits for.
  socket.on("error", (error) => reject(targetError(error)));
  await promise;
  return socket;
}

async function httpGet(request: HttpProbeRequest, signal: AbortSignal): Promise<HttpProbeAnswer> {
  let current = request;
  for (let sent = 1; ; sent++) {
    const { status, location } = await getOnce(current, signal);
    if (location === undefined || !redirects.has(status)) return { status };
    const next = redirected(current, location);
    if (next.host.toLowerCase() !== request.host.toLowerCase()) return { status, redirectedTo: next.host };
    if (sent >= longestChain) throw new ProbeTargetError(`stopped after ${longestChain} redirects`);
    current = next;
  }
}

/** One request over a connection of its own, no proxy whatever the environment says. */
async function getOnce(request: HttpProbeRequest, signal: AbortSignal): Promise<ResponseHead> {
  const bytes = Buffer.from(requestText(request), "latin1");
  const address = await probeAddress(request.host, signal);
  signal.throwIfAborted();
  const { scheme, host, port } = request;
  const dialled = scheme === "https" ? dialTls : dial;
  return await ask((onBytes) => dialled(address, port, onBytes, host), bytes, new HttpAnswerReader(), signal);
}

/** Takes a server's bytes until they make an answer. */
interface AnswerReader<T> {
  /** The answer, once it is known. `bytes` may be written over afterwards. */
  push(bytes: Buffer): T | undefined;
  /** The connection ended. */
  end(): T | undefined;
  /** What the server waits to be told. */
  takeReplies?(): Buffer | undefined;
  /** What the end of the connection by `error` means here. */
  failed?(error: Error): Error;
}

/** Sends a request on a connection of its own and gives the answer to it, or what the reader throws. */
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
  // Stays: a socket that is being reset may still report an error that nobody waits for.
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

class HttpAnswerReader implements AnswerReader<ResponseHead> {
  readonly #response = new HttpResponseReader();

  push(bytes: Buffer): ResponseHead | undefined {
    return this.#take(() => this.#response.push(bytes));
  }

  end(): ResponseHead | undefined {
    return this.#take(() => this.#response.end());
  }

  failed(error: Error): Error {
    return this.#response.head === undefined ? targetError(error) : brokenAnswer(this.#response, error.message);
  }

  #take(step: () => void): ResponseHead | undefined {
    try {
      step();
    } catch (error) {
      throw brokenAnswer(this.#response, errorMessage(error));
    }
    const { head, isComplete, bodyBytes } = this.#response;
    return isComplete || bodyBytes >= maxBodyBytes ? head : undefined;
  }
}

function dial(address: string, port: number, onBytes: (bytes: Buffer) => void): Socket {
  const callback = (count: number): boolean => {
    onBytes(received.subarray(0, count));
    return true;
  };
  return connect({ host: address, port, onread: { buffer: received, callback } });
}

/** Certificates say nothing about health. The server's name goes by the host that is probed, never by a Host header. */
function dialTls(address: string, port: number, onBytes: (bytes: Buffer) => void, host: string): Socket {
  // An address is no name.
  const servername = isIP(host) === 0 ? host : "";
  return tls.connect({ host: address, port, servername, rejectUnauthorized: false }).on("data", onBytes);
}

function requestText({ path, headers }: HttpProbeRequest): string {
  if (!/^[!-~\u0080-\u00ff]+$/.test(path)) throw new TypeError("the path holds characters that a request line can't");
  let text = `GET ${path} HTTP/1.1\r\n`;
  for (const [name, value] of headers) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    text += `${name}: ${value}\r\n`;
  }
  const closes = headers.some(([name]) => name.toLowerCase() === "connection");
  return `${text}${closes ? "" : "Connection: close\r\n"}\r\n`;
}

/** Before its head has come it is the target's fault; after that it says nothing about the status. */
function brokenAnswer(reader: HttpResponseReader, problem: string): Error {
  if (reader.head === undefined) return new ProbeTargetError(problem);
  return new Error(`the body of the answer broke off: ${problem}`);
}

/** Closes without TIME_WAIT where the connection is plain TCP; the other side of a TLS one closes as it likes. */
function release(socket: Socket): void {
  // A reset of a socket that is ending already fails and leaves it open.
  if ("encrypted" in socket || socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

/** The request that a redirect asks for. A Host header of the pod's own stays while the redirect names no host. */
function redirected(from: HttpProbeRequest, location: string): HttpProbeRequest {
  let url: URL;
  try {
    url = new URL(location, `${from.scheme}://${authority(from.host, from.port)}${from.path}`);
  } catch (error) {
    throw new ProbeTargetError("redirected to something that is no URL", { cause: error });
  }
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== "http" && scheme !== "https") throw new ProbeTargetError(`redirected to a URL of scheme ${scheme}`);
  const host = hostOf(url);
  const port = Number(url.port || (scheme === "https" ? 443 : 80));
  const namesHost = /^([a-z][a-z0-9+.-]*:)?\/\//i.test(location);
  const headers = from.headers.map(([name, value]) =>
    namesHost && name.toLowerCase() === "host" ? ([name, url.host] as const) : ([name, value] as const),
  );
  return { scheme, host, port, path: url.pathname + url.search, headers };
}

function authority(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
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
    return new ProbeTargetError("the answer is not TLS", { cause: error, plainText: true });
  }
  if (code.startsWith(sslCode)) {
    // OpenSSL's message holds places of its own sources.
    const problem = code.slice(sslCode.length).toLowerCase().replaceAll("_", " ");
    return new ProbeTargetError(`TLS failed: ${problem}`, { cause: error });
  }
  return new ProbeTargetError(explained[code] ?? error.message, { cause: error });
}
