import { HttpSyntaxError } from "./syntax-error.ts";

/** RFC 9113 §6. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const flags = { ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;
/** RFC 9113 §6.5.2. */
export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;
export const headerBytes = 9;
/** The defaults of SETTINGS_MAX_FRAME_SIZE and SETTINGS_INITIAL_WINDOW_SIZE. */
export const maxFrameBytes = 16 * 1024;
export const initialWindowBytes = 65_535;

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** RFC 9113 §7. */
const errorNames = [
  ...["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED"],
  ...["FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM"],
  ...["INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"],
];
export const errorCodes = { none: 0, protocolError: 1, refusedStream: 7, cancel: 8 } as const;

export function errorName(code: number): string {
  return errorNames[code] ?? `error ${code}`;
}

export interface Frame {
  readonly type: number;
  readonly flag: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function frame(type: number, flag: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + payload.length);
  writeHeader(bytes, 0, { type, flag, stream }, payload.length);
  bytes.set(payload, headerBytes);
  return bytes;
}

/** Writes a frame's header. */
export function writeHeader(bytes: Buffer, at: number, head: Omit<Frame, "payload">, length: number): void {
  bytes.writeUIntBE(length, at, 3);
  bytes[at + 3] = head.type;
  bytes[at + 4] = head.flag;
  bytes.writeUInt32BE(head.stream, at + 5);
}

/** A frame of one number. */
export function numberFrame(type: number, stream: number, value: number): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + 4);
  writeHeader(bytes, 0, { type, flag: 0, stream }, 4);
  bytes.writeUInt32BE(value, headerBytes);
  return bytes;
}

/** @param values by {@link settingIds} */
export function settingsFrame(values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(values.length * 6);
  for (const [index, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  }
  return frame(frameTypes.settings, 0, 0, payload);
}

export const settingsAcknowledged = frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0));

/** Cuts what a peer sends into frames. */
export class FrameReader {
  #rest: Buffer = empty;
  #isFirst = true;

  /** Nothing has been read, not even in part. */
  get isUntouched(): boolean {
    return this.#isFirst && this.#rest.length === 0;
  }

  /**
   * The chunk's complete frames, until `take` returns false. Their payloads are views of the chunk, which may be reused
   * afterwards.
   * @throws HttpSyntaxError for what is not HTTP/2, or a frame longer than announced
   */
  push(chunk: Buffer, take: (taken: Frame) => boolean): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= headerBytes) {
      const length = bytes.readUIntBE(at, 3);
      const type = bytes.readUInt8(at + 3);
      if (this.#isFirst && type !== frameTypes.settings) throw new HttpSyntaxError("the response is not HTTP/2");
      if (length > maxFrameBytes) throw new HttpSyntaxError(`a frame is longer than ${maxFrameBytes} bytes`);
      const end = at + headerBytes + length;
      if (bytes.length < end) break;
      this.#isFirst = false;
      const flag = bytes.readUInt8(at + 4);
      const stream = bytes.readUInt32BE(at + 5) & 0x7f_ff_ff_ff;
      const payload = bytes.subarray(at + headerBytes, end);
      at = end;
      if (!take({ type, flag, stream, payload })) break;
    }
    this.#rest = at === bytes.length ? empty : Buffer.from(bytes.subarray(at));
  }
}

const empty = Buffer.alloc(0);

/** The payload of a frame that may be padded. */
export function unpadded({ flag, payload }: Frame): Buffer {
  if ((flag & flags.padded) === 0) return payload;
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) throw new HttpSyntaxError("a frame is padded beyond its end");
  return payload.subarray(1, payload.length - padding);
}
