import { validateHeaderName, validateHeaderValue } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import * as tls from "node:tls";
import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import {
  type HttpProbeAnswer,
  type HttpProbeRequest,
  type NetworkProbes,
  ProbeTargetError,
} from "../ports/network-probes.ts";
import { HttpResponseReader, type ResponseHead } from "./http-response.ts";
import { checkHealth } from "./probe-grpc.ts";
import { probeAddress } from "./probe-names.ts";

const maxBodyBytes = 10 * 1024;
/** As Go's default client does: the tenth request of a chain is the last. */
const longestChain = 10;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

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
    const socket = await open(host, port, signal);
    // HTTP/2 writes more than once before the other side has anything to say.
    socket.setNoDelay(true);
    return await checkHealth(socket, authority(host, port), service, signal);
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
  const text = requestText(request);
  const address = await probeAddress(request.host, signal);
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<ResponseHead>();
  const reader = new HttpResponseReader();
  const take = (step: () => void): void => {
    try {
      step();
      const { head, isComplete, bodyBytes } = reader;
      if (head !== undefined && (isComplete || bodyBytes >= maxBodyBytes)) resolve(head);
    } catch (error) {
      reject(brokenAnswer(reader, errorMessage(error)));
    }
  };
  const socket = dial(request, address, (bytes) => take(() => reader.push(bytes)));
  using _abort = onAbort(signal, () => reject(signal.reason));
  socket.once(request.scheme === "http" ? "connect" : "secureConnect", () => socket.write(text, "latin1"));
  socket.once("end", () => take(() => reader.end()));
  // Stays: a socket that is being reset may still report an error that nobody waits for.
  socket.on("error", (error) => {
    reject(reader.head === undefined ? targetError(error) : brokenAnswer(reader, error.message));
  });
  socket.once("close", () => take(() => reader.end()));
  try {
    return await promise;
  } finally {
    release(socket);
  }
}

/** Certificates say nothing about health. The server's name goes by the host that is probed, never by a Host header. */
function dial({ scheme, host, port }: HttpProbeRequest, address: string, onBytes: (bytes: Buffer) => void): Socket {
  if (scheme === "https") {
    // An address is no name.
    const servername = isIP(host) === 0 ? host : "";
    return tls.connect({ host: address, port, servername, rejectUnauthorized: false }).on("data", onBytes);
  }
  const callback = (count: number): boolean => {
    onBytes(received.subarray(0, count));
    return true;
  };
  return connect({ host: address, port, onread: { buffer: received, callback } });
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
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
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
