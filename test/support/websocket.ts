import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";

/** A WebSocket (RFC 6455) for Kubernetes' streams: binary messages whose first byte is the channel. */
export class ChannelSocket implements Disposable {
  readonly #socket: Duplex;
  readonly #messages: AsyncGenerator<Uint8Array>;

  private constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    this.#messages = messages(socket, head);
  }

  /** @throws with the status and text of a response that is not an upgrade */
  static async open(options: RequestOptions, protocol: string): Promise<ChannelSocket> {
    const headers = {
      ...(options.headers as Record<string, string> | undefined),
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
      "Sec-WebSocket-Protocol": protocol,
    };
    const outgoing = request({ ...options, headers, agent: false });
    const upgraded = Promise.withResolvers<ChannelSocket>();
    outgoing.once("upgrade", (_response, socket, head) => upgraded.resolve(new ChannelSocket(socket, head)));
    outgoing.once("response", (response: IncomingMessage) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.once("end", () => upgraded.reject(new Error(`${response.statusCode}: ${text}`)));
    });
    outgoing.once("error", upgraded.reject);
    outgoing.end();
    return await upgraded.promise;
  }

  async send(channel: number, data: string | Uint8Array): Promise<void> {
    const payload = Buffer.concat([Buffer.from([channel]), Buffer.from(data)]);
    const length =
      payload.length < 126 ? Buffer.from([0x80 | payload.length]) : Buffer.from([0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    if (payload.length >= 126) length.writeBigUInt64BE(BigInt(payload.length), 1);
    // A zero mask leaves the payload unchanged.
    const frame = Buffer.concat([Buffer.from([0x82]), length, Buffer.alloc(4), payload]);
    if (!this.#socket.write(frame)) await once(this.#socket, "drain");
  }

  /** The data of each channel, until the server closes. */
  async receive(): Promise<Map<number, Buffer>> {
    const parts = new Map<number, Uint8Array[]>();
    for await (const message of this.#messages) {
      const [channel = -1] = message;
      parts.set(channel, [...(parts.get(channel) ?? []), message.subarray(1)]);
    }
    return new Map([...parts].map(([channel, pieces]) => [channel, Buffer.concat(pieces)]));
  }

  /** The next non-empty message, with its channel. */
  async next(): Promise<{ readonly channel: number; readonly data: Buffer } | undefined> {
    for (;;) {
      const { value, done } = await this.#messages.next();
      if (done === true) return undefined;
      const message = value;
      if (message.length > 1) return { channel: message[0] ?? -1, data: Buffer.from(message.subarray(1)) };
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** The payloads of the server's frames, which are neither fragmented nor masked. */
async function* messages(socket: Duplex, head: Uint8Array): AsyncGenerator<Uint8Array> {
  let buffer: Buffer = Buffer.from(head);
  const chunks = socket[Symbol.asyncIterator]();
  const fill = async (wanted: number): Promise<boolean> => {
    while (buffer.length < wanted) {
      const { value, done } = (await chunks.next()) as IteratorResult<Buffer, undefined>;
      if (done === true) return false;
      buffer = Buffer.concat([buffer, value]);
    }
    return true;
  };
  while (await fill(2)) {
    const opcode = (buffer[0] ?? 0) & 0x0f;
    const short = (buffer[1] ?? 0) & 0x7f;
    const header = 2 + (short === 126 ? 2 : short === 127 ? 8 : 0);
    if (!(await fill(header))) return;
    const length = short === 126 ? buffer.readUInt16BE(2) : short === 127 ? Number(buffer.readBigUInt64BE(2)) : short;
    if (!(await fill(header + length))) return;
    const payload = buffer.subarray(header, header + length);
    buffer = buffer.subarray(header + length);
    if (opcode === 8) return;
    if (opcode <= 2) yield payload;
  }
}
