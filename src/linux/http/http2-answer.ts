import { StreamResetError } from "../../http2/errors.ts";
import {
  errorCodes,
  errorName,
  flags,
  frame,
  type Frame,
  FrameReader,
  frameTypes,
  initialWindowBytes,
  maxFrameBytes,
  preface,
  settingIds,
  settingsAcknowledged,
  settingsFrame,
  unpadded,
} from "../../http2/frames.ts";
import { type HeaderSection, HeaderSections } from "../../http2/header-sections.ts";
import { RequestBody } from "../../http2/request-body.ts";
import { HttpSyntaxError } from "../../http2/syntax-error.ts";

const maxHeaderBlockBytes = 64 * 1024;
/** A server that sends frames without end counts as not responding. */
const maxFrames = 1_000;
/** The request's stream, the first that a client opens. */
const requestStream = 1;

const opening = Buffer.concat([preface, settingsFrame([[settingIds.enablePush, 0]])]);

/**
 * Everything that a client sends for one request on its own connection: the preface, its settings, the headers and the
 * body. `headerBlock` comes from {@link encodeField}.
 * @throws RangeError when a part exceeds what may be sent before the server's settings arrive
 */
export function http2Request(headerBlock: Buffer, body: Buffer): Buffer {
  if (body.length > initialWindowBytes) throw new RangeError(`a request of more than ${initialWindowBytes} bytes`);
  if (headerBlock.length > maxFrameBytes) throw new RangeError(`headers of more than ${maxFrameBytes} bytes`);
  const request = new RequestBody(headerBlock, body);
  request.window = initialWindowBytes;
  const sent = request.take(requestStream, maxFrameBytes, initialWindowBytes);
  return Buffer.concat([opening, sent?.frames ?? Buffer.alloc(0)]);
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
  readonly #frames = new FrameReader();
  readonly #sections = new HeaderSections(maxHeaderBlockBytes);
  readonly #bodyParts: Buffer[] = [];
  #bodyBytes = 0;
  #frameCount = 0;
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
   * @throws StreamResetError when the server resets the request or connection
   */
  push(chunk: Buffer): void {
    if (this.isComplete) return;
    this.#frames.push(chunk, (taken) => {
      if (++this.#frameCount > maxFrames) throw new HttpSyntaxError(`the response has more than ${maxFrames} frames`);
      this.#take(taken);
      return !this.isComplete;
    });
  }

  /**
   * Ends the connection.
   * @throws HttpSyntaxError for an incomplete response
   */
  end(): void {
    if (this.isComplete) return;
    const { isUntouched } = this.#frames;
    throw new HttpSyntaxError(
      isUntouched ? "the connection closed before the response" : "the connection closed early",
    );
  }

  #take(taken: Frame): void {
    const { type, flag, payload } = taken;
    this.#sections.expect(taken);
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
    if (last >= requestStream && code === errorCodes.none) return;
    throw new StreamResetError(code, `the server sent GOAWAY: ${errorName(code)}`);
  }

  #takeOfRequest(taken: Frame): void {
    const { type, flag, payload } = taken;
    switch (type) {
      case frameTypes.headers:
      case frameTypes.continuation:
        return this.#takeFields(this.#sections.take(taken));
      case frameTypes.data:
        return this.#takeData(unpadded(taken), (flag & flags.endStream) !== 0);
      case frameTypes.resetStream:
        if (payload.length !== 4) throw new HttpSyntaxError("a RST_STREAM is not 4 bytes long");
        throw new StreamResetError(payload.readUInt32BE(0));
      default:
    }
  }

  #takeFields(section: HeaderSection | undefined): void {
    if (section === undefined) return;
    const { fields, endsStream } = section;
    const isInterim = /^1\d\d$/.test(fields.get(":status") ?? "");
    if (this.headers !== undefined) this.trailers = fields;
    else if (!isInterim) this.headers = fields;
    this.isComplete = endsStream;
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
