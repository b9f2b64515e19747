import { HpackDecoder } from "./hpack.ts";
import { HttpSyntaxError } from "./http-response.ts";

/** RFC 9113 §6. */
const frameTypes = {
  data: 0,
  headers: 1,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  continuation: 9,
};
const flags = { ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 };
const headerBytes = 9;
/** The defaults of SETTINGS_MAX_FRAME_SIZE and SETTINGS_INITIAL_WINDOW_SIZE. */
const maxFrameBytes = 16 * 1024;
const initialWindowBytes = 65_535;
const maxHeaderBlockBytes = 64 * 1024;
/** A server that sends frames without end counts as not responding. */
const maxFrames = 1_000;
/** The request's stream, the first that a client opens. */
const requestStream = 1;

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const enablePush = 2;
const opening = Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.of(0, enablePush, 0, 0, 0, 0))]);
const settingsAcknowledged = frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0));

/** RFC 9113 §7. */
const errorNames = [
  ...["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED"],
  ...["FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM"],
  ...["INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"],
];

/**
 * Everything that a client sends for one request on its own connection: the preface, its settings, the headers and the
 * body. `headerBlock` comes from {@link encodeField}.
 * @throws RangeError when a part exceeds what may be sent before the server's settings arrive
 */
export function http2Request(headerBlock: Uint8Array, body: Uint8Array): Buffer {
  if (body.length > initialWindowBytes) throw new RangeError(`a request of more than ${initialWindowBytes} bytes`);
  if (headerBlock.length > maxFrameBytes) throw new RangeError(`headers of more than ${maxFrameBytes} bytes`);
  const parts = [opening, frame(frameTypes.headers, flags.endHeaders, requestStream, headerBlock)];
  for (let at = 0; at === 0 || at < body.length; at += maxFrameBytes) {
    const isLast = at + maxFrameBytes >= body.length;
    const part = body.subarray(at, at + maxFrameBytes);
    parts.push(frame(frameTypes.data, isLast ? flags.endStream : 0, requestStream, part));
  }
  return Buffer.concat(parts);
}

function frame(type: number, flag: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes.writeUInt8(type, 3);
  bytes.writeUInt8(flag, 4);
  bytes.writeUInt32BE(stream, 5);
  bytes.set(payload, headerBytes);
  return bytes;
}

interface Frame {
  readonly type: number;
  readonly flag: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** The server ended the request or the connection; `message` is a clause with the name of the HTTP/2 error. */
export class Http2ResetError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Http2ResetError";
  }
}

/**
 * Reads the response to one {@link http2Request} (RFC 9113).
 *
 * Not node:http2: a session with its streams costs more than twice the CPU time of the connection itself, and a node
 * makes hundreds of probes a second. The input comes from pods, so every length is bounded; the flow-control window is
 * never extended.
 */
export class Http2AnswerReader {
  /** Undefined until complete; interim (1xx) responses are skipped. */
  headers: ReadonlyMap<string, string> | undefined;
  trailers: ReadonlyMap<string, string> | undefined;
  isComplete = false;
  readonly #maxBodyBytes: number;
  readonly #hpack = new HpackDecoder();
  readonly #bodyParts: Buffer[] = [];
  #bodyBytes = 0;
  #rest: Buffer = Buffer.alloc(0);
  #frames = 0;
  /** An unfinished header section. */
  #block: { readonly parts: Buffer[]; bytes: number; readonly endsStream: boolean } | undefined;
  #replies: Buffer[] = [];

  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes;
  }

  get body(): Buffer {
    return Buffer.concat(this.#bodyParts);
  }

  /** Frames to send back since the last call. */
  takeReplies(): Buffer | undefined {
    if (this.#replies.length === 0) return undefined;
    const replies = Buffer.concat(this.#replies);
    this.#replies = [];
    return replies;
  }

  /**
   * `chunk` may be reused afterwards.
   * @throws HttpSyntaxError for invalid HTTP/2
   * @throws Http2ResetError when the server resets the request or connection
   */
  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (!this.isComplete && bytes.length - at >= headerBytes) {
      const length = bytes.readUIntBE(at, 3);
      const type = bytes.readUInt8(at + 3);
      if (this.#frames === 0 && type !== frameTypes.settings) throw new HttpSyntaxError("the response is not HTTP/2");
      if (length > maxFrameBytes) throw new HttpSyntaxError(`a frame is longer than ${maxFrameBytes} bytes`);
      const end = at + headerBytes + length;
      if (bytes.length < end) break;
      if (++this.#frames > maxFrames) throw new HttpSyntaxError(`the response has more than ${maxFrames} frames`);
      const stream = bytes.readUInt32BE(at + 5) & 0x7f_ff_ff_ff;
      this.#take({ type, flag: bytes.readUInt8(at + 4), stream, payload: bytes.subarray(at + headerBytes, end) });
      at = end;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
  }

  /**
   * Ends the connection.
   * @throws HttpSyntaxError for an incomplete response
   */
  end(): void {
    if (this.isComplete) return;
    const begun = this.#frames > 0 || this.#rest.length > 0;
    throw new HttpSyntaxError(begun ? "the connection closed early" : "the connection closed before the response");
  }

  #take(taken: Frame): void {
    const { type, flag, payload } = taken;
    if (this.#block !== undefined && type !== frameTypes.continuation) {
      throw new HttpSyntaxError("a header section breaks off");
    }
    switch (type) {
      case frameTypes.settings:
        if ((flag & flags.ack) === 0) this.#replies.push(settingsAcknowledged);
        return;
      case frameTypes.ping:
        if (payload.length !== 8) throw new HttpSyntaxError("a PING is not 8 bytes long");
        if ((flag & flags.ack) === 0) this.#replies.push(frame(frameTypes.ping, flags.ack, 0, Buffer.from(payload)));
        return;
      case frameTypes.goAway:
        return this.#takeGoAway(payload);
      case frameTypes.pushPromise:
        throw new HttpSyntaxError("the server pushes, which is disabled");
      default:
        if (taken.stream === requestStream) this.#takeOfRequest(taken);
        else if (framesOfStreams.has(type)) throw new HttpSyntaxError("a frame belongs to no request");
    }
  }

  #takeGoAway(payload: Buffer): void {
    if (payload.length < 8) throw new HttpSyntaxError("a GOAWAY is cut off");
    const last = payload.readUInt32BE(0) & 0x7f_ff_ff_ff;
    const code = payload.readUInt32BE(4);
    // The server may close the connection gracefully and finish this response.
    if (last >= requestStream && code === 0) return;
    throw new Http2ResetError(`the server sent GOAWAY: ${errorName(code)}`);
  }

  #takeOfRequest({ type, flag, payload }: Frame): void {
    const endsStream = (flag & flags.endStream) !== 0;
    switch (type) {
      case frameTypes.headers:
        this.#block = { parts: [], bytes: 0, endsStream };
        return this.#takeHeaderPart(headerPart(flag, payload), flag);
      case frameTypes.continuation:
        return this.#takeHeaderPart(payload, flag);
      case frameTypes.data:
        return this.#takeData(unpadded(flag, payload), endsStream);
      case frameTypes.resetStream:
        if (payload.length !== 4) throw new HttpSyntaxError("a RST_STREAM is not 4 bytes long");
        throw new Http2ResetError(`the server reset the request: ${errorName(payload.readUInt32BE(0))}`);
      default:
    }
  }

  #takeHeaderPart(part: Buffer, flag: number): void {
    const block = this.#block;
    if (block === undefined) throw new HttpSyntaxError("a header section has no beginning");
    block.bytes += part.length;
    if (block.bytes > maxHeaderBlockBytes) throw new HttpSyntaxError(`its headers exceed ${maxHeaderBlockBytes} bytes`);
    block.parts.push(Buffer.from(part));
    if ((flag & flags.endHeaders) === 0) return;
    this.#block = undefined;
    const fields = this.#hpack.decode(Buffer.concat(block.parts));
    const isInterim = /^1\d\d$/.test(fields.get(":status") ?? "");
    if (this.headers !== undefined) this.trailers = fields;
    else if (!isInterim) this.headers = fields;
    this.isComplete = block.endsStream;
  }

  #takeData(content: Buffer, endsStream: boolean): void {
    if (this.headers === undefined) throw new HttpSyntaxError("a body came before the headers");
    this.#bodyBytes += content.length;
    if (this.#bodyBytes > this.#maxBodyBytes) throw new HttpSyntaxError("the response is too long");
    this.#bodyParts.push(Buffer.from(content));
    this.isComplete = endsStream;
  }
}

const framesOfStreams: ReadonlySet<number> = new Set([frameTypes.data, frameTypes.headers, frameTypes.continuation]);

function headerPart(flag: number, payload: Buffer): Buffer {
  const priorityBytes = (flag & flags.priority) === 0 ? 0 : 5;
  const part = unpadded(flag, payload);
  if (part.length < priorityBytes) throw new HttpSyntaxError("a frame is cut off");
  return part.subarray(priorityBytes);
}

function unpadded(flag: number, payload: Buffer): Buffer {
  if ((flag & flags.padded) === 0) return payload;
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) throw new HttpSyntaxError("a frame is padded beyond its end");
  return payload.subarray(1, payload.length - padding);
}

function errorName(code: number): string {
  return errorNames[code] ?? `error ${code}`;
}
