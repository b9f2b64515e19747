import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { StreamChoice } from "../../ports/node-server.ts";
import { arriving, written } from "./pipe.ts";
import { systemClock } from "../processes/clock.ts";
import { SpdySession, type SpdyStream } from "./spdy-session.ts";
import {
  acceptKey,
  binaryMessage,
  closeMessage,
  pong,
  type SocketFrame,
  WebSocketDecoder,
  WebSocketError,
} from "./websocket-frames.ts";

/** Translates between a WebSocket client and a runtime, which speaks only SPDY. */
export interface Bridge {
  /** The protocol agreed with the client. */
  readonly protocol: string;
  /** The protocol requested from the runtime: X-Stream-Protocol-Version. */
  readonly spdyProtocol: string;
  /** Passes data both ways until one side ends. Never rejects. */
  readonly pipe: (client: Duplex, head: Buffer, upstream: Duplex, upstreamHead: Buffer) => Promise<void>;
}

/** On this channel, the last byte of a message names a channel that its sender has closed (v5.channel.k8s.io). */
const closeChannel = 255;
const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
const channelProtocol = "v5.channel.k8s.io";
const tunnelPrefix = "SPDY/3.1+";
const maxStatusBytes = 64 * 1024;
const maxSizeBytes = 1024;
const leaveMs = 5000;

/**
 * Undefined when the runtime can answer the request itself.
 * @param streams of a command; undefined: port forwarding
 */
export function bridgeOf({ headers }: IncomingMessage, streams: StreamChoice | undefined): Bridge | undefined {
  if (headers.upgrade?.toLowerCase() !== "websocket" || headers["sec-websocket-key"] === undefined) return undefined;
  const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  if (streams !== undefined) {
    if (!offered.includes(channelProtocol)) return undefined;
    const pipe: Bridge["pipe"] = async (...sides) => await new ChannelBridge(streams, ...sides).run();
    return { protocol: channelProtocol, spdyProtocol: "v4.channel.k8s.io", pipe };
  }
  const protocol = offered.find((each) => each.startsWith(tunnelPrefix) && each.endsWith(".k8s.io"));
  if (protocol === undefined) return undefined;
  return { protocol, spdyProtocol: protocol.slice(tunnelPrefix.length), pipe: tunnel };
}

/** Why a client's handshake is invalid (RFC 6455, section 4.2.1); undefined: it is valid. */
export function handshakeProblem({ headers }: IncomingMessage): string | undefined {
  if (headers["sec-websocket-version"] !== "13") return "Sec-WebSocket-Version must be 13";
  const key = headers["sec-websocket-key"] ?? "";
  return /^[A-Za-z0-9+/]{22}==$/u.test(key) ? undefined : "Sec-WebSocket-Key must be 16 bytes in base64";
}

/** The response that switches the protocol. */
export function bridgeAnswer({ headers }: IncomingMessage, { protocol }: Bridge): string {
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${acceptKey(headers["sec-websocket-key"] ?? "")}`,
    `Sec-WebSocket-Protocol: ${protocol}`,
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Maps each channel of the client to a stream of the runtime. */
class ChannelBridge {
  readonly #client: Duplex;
  readonly #head: Buffer;
  readonly #session: SpdySession;
  readonly #upstreamHead: Buffer;
  readonly #stdin: SpdyStream | undefined;
  readonly #resize: SpdyStream | undefined;
  readonly #status: Uint8Array[] = [];
  #statusBytes = 0;
  #channel = -1;
  #gathered = Buffer.alloc(0);

  constructor(streams: StreamChoice, client: Duplex, head: Buffer, upstream: Duplex, upstreamHead: Buffer) {
    this.#client = client;
    this.#head = head;
    this.#upstreamHead = upstreamHead;
    this.#session = new SpdySession(upstream);
    this.#session.open({ streamType: "error" }, (bytes) => {
      this.#statusBytes += bytes.length;
      if (this.#statusBytes <= maxStatusBytes) this.#status.push(bytes);
    });
    if (streams.stdin) this.#stdin = this.#session.open({ streamType: "stdin" }, () => {});
    for (const name of ["stdout", "stderr"] as const) {
      if (!streams[name]) continue;
      this.#session.open({ streamType: name }, async (bytes) => {
        await written(client, binaryMessage(bytes, channels[name]));
      });
    }
    if (streams.tty) this.#resize = this.#session.open({ streamType: "resize" }, () => {});
  }

  async run(): Promise<void> {
    // When the client disconnects, the command is no longer needed.
    this.#client.once("close", () => this.#session.close());
    const input = fromClient(this.#client, this.#head, (frame) => this.#take(frame));
    void input.then(() => this.#session.close());
    await this.#session.run(this.#upstreamHead).catch(() => {});
    const status = this.#statusBytes === 0 ? lost : Buffer.concat(this.#status);
    if (this.#client.writable) this.#client.write(binaryMessage(status, channels.error));
    finish(this.#client, 1000);
    await input;
  }

  async #take({ bytes, first, last }: Extract<SocketFrame, { readonly kind: "data" }>): Promise<void> {
    let piece = bytes;
    if (first) {
      this.#channel = piece[0] ?? -1;
      this.#gathered = Buffer.alloc(0);
      piece = piece.subarray(1);
    }
    if (this.#channel === channels.stdin) {
      if (piece.length > 0) await this.#stdin?.write(piece);
      return;
    }
    if (this.#channel !== channels.resize && this.#channel !== closeChannel) return;
    if (this.#gathered.length + piece.length > maxSizeBytes) throw new WebSocketError("a size that is too long");
    this.#gathered = Buffer.concat([this.#gathered, piece]);
    if (!last) return;
    if (this.#channel === closeChannel && this.#gathered[0] === channels.stdin) this.#stdin?.end();
    if (this.#channel === channels.resize) await this.#resize?.write(this.#gathered);
  }
}

const lost = Buffer.from(
  JSON.stringify({
    metadata: {},
    status: "Failure",
    message: "the connection to the container runtime ended before the command did",
    reason: "InternalError",
    code: 500,
  }),
);

/** Tunnels a whole SPDY connection in WebSocket messages. */
async function tunnel(client: Duplex, head: Buffer, upstream: Duplex, upstreamHead: Buffer): Promise<void> {
  const end = (): void => {
    client.destroy();
    upstream.destroy();
  };
  client.once("close", () => upstream.destroy());
  const up = fromClient(client, head, async ({ bytes }) => await written(upstream, bytes)).then(() => upstream.end());
  const down = (async () => {
    if (upstreamHead.length > 0) await written(client, binaryMessage(upstreamHead));
    for await (const chunk of arriving(upstream)) await written(client, binaryMessage(chunk));
    finish(client, 1000);
  })();
  await Promise.allSettled([up, down]);
  end();
}

/** Passes a client's data on until it ends, answers its pings, and disconnects it for protocol errors. */
async function fromClient(
  client: Duplex,
  head: Buffer,
  take: (frame: Extract<SocketFrame, { readonly kind: "data" }>) => Promise<void>,
): Promise<void> {
  const decoder = new WebSocketDecoder();
  /** False after the client's last data. */
  const feed = async (chunk: Uint8Array): Promise<boolean> => {
    for (const frame of decoder.push(chunk)) {
      if (frame.kind === "close") return false;
      if (frame.kind === "data") await take(frame);
      else await written(client, pong(frame.bytes));
    }
    return true;
  };
  try {
    let goesOn = await feed(head);
    // The end of the client's data does not cut off output that is being sent to it.
    for await (const chunk of goesOn ? client.iterator({ destroyOnReturn: false }) : []) {
      goesOn = await feed(chunk as Uint8Array);
      if (!goesOn) break;
    }
    finish(client, 1000);
  } catch (error) {
    if (error instanceof WebSocketError) finish(client, 1002, error.message);
    else client.destroy();
  }
}

/** Sends a close frame, and disconnects a client that does not answer. */
function finish(client: Duplex, code: number, reason = ""): void {
  if (!client.writable) return;
  client.end(closeMessage(code, reason));
  const timer = systemClock.timer("a client to disconnect", leaveMs, () => client.destroy());
  client.once("close", () => timer[Symbol.dispose]());
}
