import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { onAbort } from "../../base/abort.ts";
import type { ApiResponse } from "../../ports/api-server.ts";
import type { Forward } from "../../ports/node-server.ts";
import { pipe } from "./pipe.ts";
import { connectStreaming, streamingFailure } from "./streaming-connection.ts";
import { type Bridge, bridgeAnswer, bridgeOf, handshakeProblem } from "./websocket-bridge.ts";

/** How long the other server may take to respond. */
const answerLimitMs = 30_000;
/** Maximum part of a refusal's body that is passed on. */
const maxRefusalBytes = 4096;

const nosniff = { "X-Content-Type-Options": "nosniff" };

/** Hop-by-hop headers, and those written here; `authorization` is for podwright alone. */
const ownHeaders = new Set(["host", "authorization", "cookie", "transfer-encoding", "content-length"]);

/** A connection whose client has requested an upgrade. */
export interface UpgradeConnection {
  readonly incoming: IncomingMessage;
  /** Nothing has been written to it yet. */
  readonly client: Duplex;
  /** Bytes that the client has sent after its request. */
  readonly head: Buffer;
}

/**
 * Forwards an upgrade request to another server. If that accepts, passes bytes both ways until either side ends, the
 * connection has been idle for too long or the signal aborts. Never rejects.
 */
export async function forwardUpgrade(
  { incoming, client, head }: UpgradeConnection,
  { forwardTo, streams }: Forward,
  idleMs: number,
  signal: AbortSignal,
): Promise<void> {
  const bridge = bridgeOf(incoming, streams);
  const problem = bridge && handshakeProblem(incoming);
  if (problem !== undefined) {
    await answerRaw(client, { ...plain(400, `${problem}\n`), headers: { ...nosniff, "Sec-WebSocket-Version": "13" } });
    return;
  }
  const url = new URL(forwardTo);
  let answer: Upgraded | ApiResponse;
  try {
    answer = await askForUpgrade(bridge ? spdyRequest(bridge) : ownRequest(incoming), url, signal);
  } catch (error) {
    answer = plain(502, `${streamingFailure(url, error)}\n`);
  }
  if (!("upstream" in answer)) {
    await answerRaw(client, answer);
    return;
  }
  const { upstream, response } = answer;
  const end = (): void => {
    client.destroy();
    upstream.destroy();
  };
  using _signal = onAbort(signal, end);
  for (const side of [client, upstream]) if ("setTimeout" in side) (side as Timed).setTimeout(idleMs, end);
  if (bridge !== undefined) {
    client.write(bridgeAnswer(incoming, bridge));
    await bridge.pipe(client, head, upstream, answer.head);
  } else {
    client.write(`HTTP/1.1 101 Switching Protocols\r\n${headerLines(response.rawHeaders)}\r\n`);
    if (answer.head.length > 0) client.write(answer.head);
    if (head.length > 0) upstream.write(head);
    await pipe(client, upstream);
  }
  end();
}

interface UpgradeRequest {
  readonly method: string;
  readonly headers: Record<string, string | string[]>;
}

function ownRequest({ method = "GET", headers }: IncomingMessage): UpgradeRequest {
  return { method, headers: forwarded(headers) };
}

function spdyRequest({ spdyProtocol }: Bridge): UpgradeRequest {
  const headers = { Connection: "Upgrade", Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": spdyProtocol };
  return { method: "POST", headers };
}

interface Timed {
  setTimeout(ms: number, callback: () => void): void;
}

interface Upgraded {
  readonly upstream: Duplex;
  readonly head: Buffer;
  readonly response: IncomingMessage;
}

/** @throws when the other server is unreachable or does not respond in time */
async function askForUpgrade(asked: UpgradeRequest, url: URL, signal: AbortSignal): Promise<Upgraded | ApiResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<Upgraded | ApiResponse>();
  const connection = connectStreaming(url);
  const outgoing = httpRequest({
    ...{ ...asked, hostname: url.hostname, port: url.port, path: `${url.pathname}${url.search}` },
    createConnection: () => connection,
    signal,
    timeout: answerLimitMs,
  });
  outgoing.once("upgrade", (response, upstream, head) => resolve({ upstream, head, response }));
  outgoing.once("response", (response) => {
    // Half-open, it would outlive the response.
    void refusal(response)
      .then(resolve, reject)
      .finally(() => connection.destroy());
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error(`no response for ${answerLimitMs / 1000} s`)));
  outgoing.once("error", reject);
  outgoing.end();
  return await promise;
}

function forwarded(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !ownHeaders.has(name)) kept[name] = value;
  }
  return kept;
}

/** The response of a server that refused the upgrade. */
async function refusal(response: IncomingMessage): Promise<ApiResponse> {
  const status = response.statusCode ?? 502;
  if (status >= 200 && status < 400) {
    response.destroy();
    return plain(502, `the container runtime's streaming server returned ${status} instead of switching protocols\n`);
  }
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length >= maxRefusalBytes) break;
  }
  const said = text === "" ? `the container runtime refused to switch protocols\n` : text;
  return plain(status, said.slice(0, maxRefusalBytes));
}

function plain(status: number, body: string): ApiResponse {
  return { status, contentType: "text/plain; charset=utf-8", headers: nosniff, body };
}

/** Responds on a raw connection after an upgrade request, and ends it. */
export async function answerRaw(client: Duplex, { status, contentType, headers, body }: ApiResponse): Promise<void> {
  // Without a length, the end of the connection ends the response.
  const length = typeof body === "string" ? { "Content-Length": String(Buffer.byteLength(body)) } : {};
  const own = { ...headers, "Content-Type": contentType, ...length };
  const lines = headerLines(Object.entries({ ...own, Connection: "close" }).flat());
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unknown"}\r\n${lines}\r\n`;
  if (typeof body === "string") {
    const { promise, resolve } = Promise.withResolvers<void>();
    client.once("close", resolve);
    client.end(head + body, resolve);
    await promise;
  } else {
    client.write(head);
    await pipeline(body, client).catch(() => {});
  }
  client.destroy();
}

/** @param raw alternating names and values */
function headerLines(raw: readonly string[]): string {
  let lines = "";
  for (let index = 0; index + 1 < raw.length; index += 2) lines += `${raw[index]}: ${raw[index + 1]}\r\n`;
  return lines;
}
