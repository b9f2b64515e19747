/**
 * SPDY/3.1 frames as used by Kubernetes: without SPDY's own flow control. Header blocks are only sent; received ones
 * are skipped, so nothing from a peer is ever decompressed.
 */

/** A frame of a peer. */
export type SpdyFrame =
  | { readonly kind: "open"; readonly stream: number }
  | { readonly kind: "reply"; readonly stream: number; readonly end: boolean }
  | { readonly kind: "reset"; readonly stream: number; readonly status: number }
  | { readonly kind: "headers"; readonly stream: number; readonly end: boolean }
  | { readonly kind: "ping"; readonly id: number }
  | { readonly kind: "goaway"; readonly status: number }
  /** A part of a data frame, as received; `end` on the last part of a stream's last frame. */
  | { readonly kind: "data"; readonly stream: number; readonly bytes: Uint8Array; readonly end: boolean };

/** Invalid SPDY/3.1. */
export class SpdyError extends Error {
  override readonly name = "SpdyError";
}

const version = 3;
const types = {
  open: 1,
  reply: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  headers: 8,
  windowUpdate: 9,
} as const;
const finFlag = 1;
/** Control frames of a runtime are a few hundred bytes: headers with a handful of fields. */
const maxControlBytes = 64 * 1024;
const headerBytes = 8;

/** Decodes frames from a stream of bytes. Data is passed on in pieces and never buffered. */
export class SpdyDecoder {
  #held: Buffer = Buffer.alloc(0);
  #data: { readonly stream: number; readonly end: boolean; left: number } | undefined;

  /** @throws SpdyError */
  *push(chunk: Uint8Array): Generator<SpdyFrame> {
    let bytes = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk]);
    for (;;) {
      if (this.#data !== undefined) {
        const { stream, end, left } = this.#data;
        const piece = bytes.subarray(0, left);
        if (piece.length === 0 && left > 0) break;
        bytes = bytes.subarray(piece.length);
        this.#data = left > piece.length ? { stream, end, left: left - piece.length } : undefined;
        yield { kind: "data", stream, bytes: piece, end: end && this.#data === undefined };
        continue;
      }
      if (bytes.length < headerBytes) break;
      const length = bytes.readUIntBE(5, 3);
      const flags = bytes[4] ?? 0;
      const first = bytes.readUInt32BE(0);
      if (first < 0x8000_0000) {
        if (first === 0) throw new SpdyError("data for stream 0");
        this.#data = { stream: first, end: (flags & finFlag) !== 0, left: length };
        bytes = bytes.subarray(headerBytes);
        continue;
      }
      if (length > maxControlBytes) throw new SpdyError(`a control frame of ${length} bytes`);
      if (bytes.length < headerBytes + length) break;
      const frame = controlFrame(first, flags, bytes.subarray(headerBytes, headerBytes + length));
      bytes = bytes.subarray(headerBytes + length);
      if (frame !== undefined) yield frame;
    }
    this.#held = bytes;
  }
}

function controlFrame(first: number, flags: number, body: Buffer): SpdyFrame | undefined {
  const spoken = (first >>> 16) & 0x7fff;
  if (spoken !== version) throw new SpdyError(`version ${spoken} of SPDY`);
  const type = first & 0xffff;
  const need = (length: number): void => {
    if (body.length < length) throw new SpdyError(`a frame of type ${type} with ${body.length} bytes`);
  };
  const id = (): number => {
    need(4);
    return body.readUInt32BE(0) & 0x7fff_ffff;
  };
  const end = (flags & finFlag) !== 0;
  switch (type) {
    case types.open:
      need(10);
      return { kind: "open", stream: id() };
    case types.reply:
      return { kind: "reply", stream: id(), end };
    case types.headers:
      return { kind: "headers", stream: id(), end };
    case types.reset:
      need(8);
      return { kind: "reset", stream: id(), status: body.readUInt32BE(4) };
    case types.goaway:
      need(8);
      return { kind: "goaway", status: body.readUInt32BE(4) };
    case types.ping:
      need(4);
      return { kind: "ping", id: body.readUInt32BE(0) };
    case types.settings:
    case types.windowUpdate:
      return undefined;
    default:
      throw new SpdyError(`a frame of type ${type}`);
  }
}

/**
 * Encodes frames. The header blocks of one connection form one compressed stream, so each connection has one encoder.
 */
export class SpdyEncoder {
  #first = true;

  open(stream: number, headers: Readonly<Record<string, string>>): Buffer {
    const fixed = Buffer.alloc(10);
    fixed.writeUInt32BE(stream, 0);
    return control(types.open, Buffer.concat([fixed, this.#headerBlock(headers)]));
  }

  data(stream: number, bytes: Uint8Array, end: boolean): Buffer {
    const header = Buffer.alloc(headerBytes);
    header.writeUInt32BE(stream, 0);
    header[4] = end ? finFlag : 0;
    header.writeUIntBE(bytes.length, 5, 3);
    return Buffer.concat([header, bytes]);
  }

  reset(stream: number, status: number): Buffer {
    const body = Buffer.alloc(8);
    body.writeUInt32BE(stream, 0);
    body.writeUInt32BE(status, 4);
    return control(types.reset, body);
  }

  ping(id: number): Buffer {
    const body = Buffer.alloc(4);
    body.writeUInt32BE(id, 0);
    return control(types.ping, body);
  }

  goaway(): Buffer {
    return control(types.goaway, Buffer.alloc(8));
  }

  /**
   * A stored (uncompressed) zlib block: a handful of short fields gains nothing from compression. The empty block after
   * it is the flush that makes readers process it.
   */
  #headerBlock(headers: Readonly<Record<string, string>>): Buffer {
    const texts = Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value]);
    const lengths = (text: string): Buffer => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(Buffer.byteLength(text));
      return bytes;
    };
    const count = Buffer.alloc(4);
    count.writeUInt32BE(texts.length / 2);
    const plain = Buffer.concat([count, ...texts.flatMap((text) => [lengths(text), Buffer.from(text)])]);
    const stored = Buffer.alloc(5);
    stored.writeUInt16LE(plain.length, 1);
    stored.writeUInt16LE(plain.length ^ 0xffff, 3);
    const start = this.#first ? zlibStart : Buffer.alloc(0);
    this.#first = false;
    return Buffer.concat([start, stored, plain, flush]);
  }
}

function control(type: number, body: Uint8Array): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE((0x8000_0000 | (version << 16) | type) >>> 0, 0);
  header.writeUIntBE(body.length, 5, 3);
  return Buffer.concat([header, body]);
}

/** RFC 1950: deflate with a preset dictionary, that of SPDY/3 by its checksum. */
const zlibStart = Buffer.from([0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2]);
const flush = Buffer.from([0, 0, 0, 0xff, 0xff]);
