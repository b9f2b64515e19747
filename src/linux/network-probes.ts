import * as http from "node:http";
import * as https from "node:https";
import { connect, isIP, type Socket } from "node:net";
import { onAbort } from "../base/abort.ts";
import {
  type HttpProbeAnswer,
  type HttpProbeRequest,
  type NetworkProbes,
  ProbeTargetError,
} from "../ports/network-probes.ts";
import { checkHealth } from "./probe-grpc.ts";
import { probeAddress } from "./probe-names.ts";

const maxBodyBytes = 10 * 1024;
/** As Go's default client does: the tenth request of a chain is the last. */
const longestChain = 10;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

// No proxy, whatever the environment says; no connection is kept. Certificates say nothing about health.
const httpAgent = new http.Agent({ keepAlive: false, maxSockets: Infinity, proxyEnv: {} });
const httpsAgent = new https.Agent({
  keepAlive: false,
  maxSockets: Infinity,
  proxyEnv: {},
  rejectUnauthorized: false,
  maxCachedSessions: 0,
});

/** Probes over this machine's network. */
export const systemNetworkProbes: NetworkProbes = {
  httpGet,

  async tcpConnect(host, port, signal) {
    const socket = await open(host, port, signal);
    socket.resetAndDestroy();
  },

  async grpcHealth(host, port, service, signal) {
    const socket = await open(host, port, signal);
    return await checkHealth(socket, authority(host, port), service, signal);
  },
};

async function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const address = await probeAddress(host, signal);
  signal.throwIfAborted();
  const socket = connect({ host: address, port, noDelay: true });
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

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
}

async function getOnce(request: HttpProbeRequest, signal: AbortSignal): Promise<Answer> {
  const address = await probeAddress(request.host, signal);
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = send(request, address);
  let socket: Socket | undefined;
  using _abort = onAbort(signal, () => {
    outgoing.destroy();
    reject(signal.reason);
  });
  outgoing.on("error", (error) => reject(targetError(error)));
  outgoing.once("socket", (its) => (socket = its));
  outgoing.once("response", (response) => {
    const answer = { status: response.statusCode ?? 0, location: response.headers.location };
    let received = 0;
    response.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (received >= maxBodyBytes) resolve(answer);
    });
    response.prependOnceListener("end", () => {
      // Before Node's own listener begins an orderly close: its side of that would stay in TIME_WAIT.
      release(socket);
      resolve(answer);
    });
    response.on("error", (error) => reject(new Error(`the body of the answer broke off: ${error.message}`)));
  });
  outgoing.end();
  try {
    return await promise;
  } finally {
    release(socket);
  }
}

function send({ scheme, host, port, path, headers }: HttpProbeRequest, address: string): http.ClientRequest {
  const options = { method: "GET", host: address, port, path, headers: headers.flat(), setHost: false };
  if (scheme === "http") return http.request({ ...options, agent: httpAgent });
  // The server's name goes by the host that is probed, never by a Host header; an address is no name.
  return https.request({ ...options, agent: httpsAgent, servername: isIP(host) === 0 ? host : "" });
}

/** Closes without TIME_WAIT where the connection is plain TCP; the other side of a TLS one closes as it likes. */
function release(socket: Socket | undefined): void {
  if (socket === undefined || socket.destroyed) return;
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

function targetError(error: Error): ProbeTargetError {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === "EPROTO" && error.message.includes("wrong version number")) {
    return new ProbeTargetError("the answer is not TLS", { cause: error, plainText: true });
  }
  return new ProbeTargetError(explained[code] ?? error.message, { cause: error });
}
