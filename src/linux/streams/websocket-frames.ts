import { createHash } from "node:crypto";

/** A client's data (RFC 6455): messages in pieces as they arrive, whatever their declared length. */
export type SocketFrame =
  /** `first`, `last`: position in its message. */
  | { readonly kind: "data"; readonly bytes: Buffer; readonly first: boolean; readonly last: boolean }
  | { readonly kind: "ping"; readonly bytes: Buffer }
  | { readonly kind: "close"; readonly bytes: Buffer };

/** Invalid data from a client. */
export class WebSocketError extends Error {
  override readonly name = "WebSocketError";
}

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const maxControlBytes = 125;

interface FrameHead {
  readonly opcode: number;
  readonly fin: boolean;
  readonly length: number;
  readonly mask: Buffer;
}

/** Decodes a client's bytes as they arrive; buffers only headers and control frames. */
export class WebSocketDecoder {
  #held: Buffer = Buffer.alloc(0);
  #frame: FrameHead | undefined;
  #passed = 0;
  #inMessage = false;
  #begun = false;

  /** @throws WebSocketError */
  *push(chunk: Uint8Array): Generator<SocketFrame> {
    let bytes = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk]);
    for (;;) {
      if (this.#frame === undefined) {
        const head = readHead(bytes);
        if (head === undefined) break;
        bytes = bytes.subarray(head.size);
        this.#begin(head.frame);
        this.#frame = head.frame;
        this.#passed = 0;
      }
      const frame = this.#frame;
      const left = frame.length - this.#passed;
      const isControl = frame.opcode >= opcodes.close;
      if (isControl ? bytes.length < left : bytes.length === 0 && left > 0) break;
      const piece = unmasked(bytes.subarray(0, left), frame.mask, this.#passed);
      bytes = bytes.subarray(piece.length);
      this.#passed += piece.length;
      const isWhole = this.#passed === frame.length;
      if (isWhole) this.#frame = undefined;
      if (isControl) {
        if (frame.opcode === opcodes.ping) yield { kind: "ping", bytes: piece };
        else if (frame.opcode === opcodes.close) yield { kind: "close", bytes: piece };
        continue;
      }
      const last = isWhole && frame.fin;
      const first = !this.#begun;
      this.#begun = !last && (this.#begun || piece.length > 0);
      if (last) this.#inMessage = false;
      if (piece.length > 0 || last) yield { kind: "data", bytes: piece, first, last };
    }
    this.#held = bytes;
  }

  #begin({ opcode, fin, length }: FrameHead): void {
    if (opcode >= opcodes.close) {
      if (opcode > opcodes.pong) throw new WebSocketError(`a frame of kind ${opcode}`);
      if (!fin || length > maxControlBytes) throw new WebSocketError("a long or fragmented control frame");
      return;
    }
    if (opcode > opcodes.binary) throw new WebSocketError(`a frame of kind ${opcode}`);
    if ((opcode === opcodes.continuation) !== this.#inMessage) {
      throw new WebSocketError("message fragments out of order");
    }
    this.#inMessage = true;
  }
}

function readHead(bytes: Buffer): { readonly frame: FrameHead; readonly size: number } | undefined {
  if (bytes.length < 2) return undefined;
  const [first = 0, second = 0] = bytes;
  if ((first & 0x70) !== 0) throw new WebSocketError("an extension that was not negotiated");
  if ((second & 0x80) === 0) throw new WebSocketError("a frame without a mask");
  const short = second & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const size = 2 + lengthBytes + 4;
  if (bytes.length < size) return undefined;
  const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (!Number.isSafeInteger(length)) throw new WebSocketError("a frame longer than 2^53 bytes");
  const mask = Buffer.from(bytes.subarray(2 + lengthBytes, size));
  return { frame: { opcode: first & 0x0f, fin: (first & 0x80) !== 0, length, mask }, size };
}

function unmasked(bytes: Buffer, mask: Buffer, offset: number): Buffer {
  const plain = Buffer.allocUnsafe(bytes.length);
  for (let index = 0; index < bytes.length; index++) {
    plain[index] = (bytes[index] ?? 0) ^ (mask[(offset + index) & 3] ?? 0);
  }
  return plain;
}

/** A whole message or control frame of the server. @param prefix bytes before the payload: a channel */
function serverFrame(opcode: number, bytes: Uint8Array, prefix: readonly number[] = []): Buffer {
  const length = prefix.length + bytes.length;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, Buffer.from(prefix), bytes]);
}

export function binaryMessage(bytes: Uint8Array, channel?: number): Buffer {
  return serverFrame(opcodes.binary, bytes, channel === undefined ? [] : [channel]);
}

export function pong(bytes: Uint8Array): Buffer {
  return serverFrame(opcodes.pong, bytes);
}

/** @param code 1000: normal; 1002: protocol error of the client */
export function closeMessage(code: number, reason = ""): Buffer {
  const body = Buffer.alloc(2);
  body.writeUInt16BE(code);
  return serverFrame(opcodes.close, Buffer.concat([body, Buffer.from(reason).subarray(0, 120)]));
}

/** The accept value for a client's key. */
export function acceptKey(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}
