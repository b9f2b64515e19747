import { TransientMap } from "../base/transient-map.ts";
import { ClientStream, type ResponseSink } from "./client-stream.ts";
import { ConnectionLostError, StreamResetError } from "./errors.ts";
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
  numberFrame,
  preface,
  settingIds,
  settingsAcknowledged,
  settingsFrame,
  unpadded,
} from "./frames.ts";
import { emptyTable } from "./hpack.ts";
import { type HeaderSection, HeaderSections } from "./header-sections.ts";
import { RequestBody } from "./request-body.ts";
import { HttpSyntaxError } from "./syntax-error.ts";

export interface SessionLimits {
  /** Unread data of a stream that holds back (RFC 9113 §5.2). */
  readonly streamWindowBytes: number;
  /** Unread data of the connection. */
  readonly connectionWindowBytes: number;
  /** A header section, as it is sent. */
  readonly headerListBytes: number;
}

export interface SessionEvents {
  /** To the server. */
  send(bytes: Buffer): void;
  /** The server has said how many requests it takes at a time. */
  settled?(): void;
  /** The server takes no more requests on this connection; `reason` is a clause. */
  goAway?(reason: string): void;
  /** No more requests are made, and the last response has ended. */
  drained(): void;
}

/** Until the server says how many requests it takes at a time. */
const assumedStreams = 100;
const mostWindowBytes = 2 ** 31 - 1;
const mostFrameBytes = 2 ** 24 - 1;
const mostStream = 2 ** 31 - 1;
/** SETTINGS_HEADER_TABLE_SIZE. */
const defaultTableBytes = 4096;

/**
 * The client's side of an HTTP/2 connection (RFC 9113), without the connection: what the server sends is pushed in, and
 * what it is to receive comes out. Requests are complete when they are made, as all unary and server-streaming calls of
 * gRPC are.
 *
 * Not node:http2: its streams cost three times the CPU time of the calls that a node makes of its runtime.
 */
export class ClientSession {
  readonly #limits: SessionLimits;
  readonly #events: SessionEvents;
  readonly #frames = new FrameReader();
  readonly #sections: HeaderSections;
  readonly #streams = new TransientMap<number, ClientStream>();
  /** Requests that wait for others to end. */
  readonly #waiting: ClientStream[] = [];
  readonly #pings: (() => void)[] = [];
  #nextStream = 1;
  /** Undefined: the server has not said how many it takes. */
  #maxStreams: number | undefined;
  #sendWindow = initialWindowBytes;
  #streamSendWindow = initialWindowBytes;
  #maxFrameBytes: number = maxFrameBytes;
  /** Received and not yet granted anew. */
  #ungranted = 0;
  /** The next header block must say that it uses no table. */
  #owesTableSize = false;
  #isRetired = false;
  #ended: Error | undefined;

  constructor(limits: SessionLimits, events: SessionEvents) {
    this.#limits = limits;
    this.#events = events;
    this.#sections = new HeaderSections(limits.headerListBytes);
    const { enablePush, initialWindowSize, maxHeaderListSize } = settingIds;
    const settings = settingsFrame([
      [enablePush, 0],
      [initialWindowSize, limits.streamWindowBytes],
      [maxHeaderListSize, limits.headerListBytes],
    ]);
    const window = numberFrame(frameTypes.windowUpdate, 0, limits.connectionWindowBytes - initialWindowBytes);
    events.send(Buffer.concat([preface, settings, window]));
  }

  /** Whether it takes another request. */
  get isOpen(): boolean {
    return !this.#isRetired && this.#ended === undefined;
  }

  /** No response is outstanding. */
  get isIdle(): boolean {
    return this.#streams.size === 0 && this.#waiting.length === 0;
  }

  /** How many more requests the server takes now. */
  get room(): number {
    return (this.#maxStreams ?? assumedStreams) - this.#streams.size - this.#waiting.length;
  }

  /**
   * @param headers a header block, of literals only
   * @param holdsBack the server sends no more than a window of data ahead of {@link ClientStream.consumed}
   * @throws StreamResetError, or the connection's error, when {@link isOpen} is false
   */
  request(headers: Buffer, body: Buffer, sink: ResponseSink, holdsBack = false): ClientStream {
    if (this.#ended !== undefined) throw this.#ended;
    if (this.#isRetired) throw new StreamResetError(errorCodes.refusedStream, "the connection takes no more requests");
    const window = { bytes: this.#limits.streamWindowBytes, holdsBack };
    const stream = new ClientStream(sink, new RequestBody(headers, body), window, {
      reset: (code) => this.#reset(stream, code),
      grant: (bytes) => this.#events.send(numberFrame(frameTypes.windowUpdate, stream.id, bytes)),
    });
    this.#waiting.push(stream);
    this.#sendWaiting();
    return stream;
  }

  /** Takes no more requests. */
  retire(): void {
    this.#isRetired = true;
    this.#next();
  }

  /** Calls back once the server has answered; never, if the connection ends before. */
  ping(answered: () => void): void {
    this.#pings.push(answered);
    this.#events.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)));
  }

  /**
   * What the server sent; may be reused afterwards.
   * @throws HttpSyntaxError for invalid HTTP/2: the connection is useless from then on
   */
  push(chunk: Buffer): void {
    this.#frames.push(chunk, (taken) => {
      this.#take(taken);
      return this.#ended === undefined;
    });
  }

  /** The connection is gone: all responses end with the error. */
  end(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    const streams = [...this.#streams.values(), ...this.#waiting.splice(0)];
    this.#streams.clear();
    for (const stream of streams) stream.end(error);
  }

  /** A response has ended. */
  #next(): void {
    if (this.#isRetired && this.isIdle) this.#events.drained();
    else this.#sendWaiting();
  }

  #sendWaiting(): void {
    while (this.#streams.size < (this.#maxStreams ?? assumedStreams)) {
      const isOver = this.#waiting.length > 0 && this.#nextStream > mostStream;
      if (isOver) return this.#goAway(mostStream, "the connection has no more streams");
      const stream = this.#waiting.shift();
      if (stream === undefined) return;
      stream.id = this.#nextStream;
      this.#nextStream += 2;
      this.#streams.set(stream.id, stream);
      stream.body.window = this.#streamSendWindow;
      if (this.#owesTableSize) stream.body.prepend(emptyTable);
      this.#owesTableSize = false;
      this.#sendOf(stream);
    }
  }

  /** Sends as much of a request as the server takes. */
  #sendOf(stream: ClientStream): void {
    const bytes = stream.body.take(stream.id, this.#maxFrameBytes, this.#sendWindow);
    if (bytes === undefined) return;
    this.#sendWindow -= bytes.ofWindow;
    this.#events.send(bytes.frames);
  }

  #sendAll(): void {
    for (const stream of this.#streams.values()) this.#sendOf(stream);
  }

  #reset(stream: ClientStream, code: number): void {
    const at = this.#waiting.indexOf(stream);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      return this.#next();
    }
    if (this.#ended !== undefined || !this.#streams.delete(stream.id)) return;
    this.#events.send(numberFrame(frameTypes.resetStream, stream.id, code));
    this.#next();
  }

  #take(taken: Frame): void {
    this.#sections.expect(taken);
    const { type, flag, payload } = taken;
    switch (type) {
      case frameTypes.settings:
        return this.#takeSettings(flag, payload);
      case frameTypes.ping:
        return this.#takePing(flag, payload);
      case frameTypes.goAway:
        return this.#takeGoAway(payload);
      case frameTypes.windowUpdate:
        return this.#takeWindow(taken);
      case frameTypes.pushPromise:
        throw new HttpSyntaxError("the server pushes, which is disabled");
      case frameTypes.headers:
      case frameTypes.continuation:
        return this.#takeFields(taken.stream, this.#sections.take(taken));
      case frameTypes.data:
        return this.#takeData(taken);
      case frameTypes.resetStream:
        return this.#takeReset(taken);
      default:
    }
  }

  #takeSettings(flag: number, payload: Buffer): void {
    if ((flag & flags.ack) !== 0) return;
    if (payload.length % 6 !== 0) throw new HttpSyntaxError("settings are cut off");
    this.#maxStreams ??= Number.POSITIVE_INFINITY;
    for (let at = 0; at < payload.length; at += 6) {
      this.#takeSetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    }
    this.#events.send(settingsAcknowledged);
    this.#events.settled?.();
    this.#sendWaiting();
    this.#sendAll();
  }

  #takeSetting(id: number, value: number): void {
    switch (id) {
      case settingIds.headerTableSize:
        this.#owesTableSize ||= value < defaultTableBytes;
        return;
      case settingIds.maxConcurrentStreams:
        this.#maxStreams = value;
        return;
      case settingIds.initialWindowSize:
        if (value > mostWindowBytes) throw new HttpSyntaxError("its window is too large");
        for (const { body } of this.#streams.values()) body.window += value - this.#streamSendWindow;
        this.#streamSendWindow = value;
        return;
      case settingIds.maxFrameSize:
        if (value < maxFrameBytes || value > mostFrameBytes) throw new HttpSyntaxError("its frame size is invalid");
        this.#maxFrameBytes = value;
        break;
      default:
    }
  }

  #takePing(flag: number, payload: Buffer): void {
    if (payload.length !== 8) throw new HttpSyntaxError("a PING is not 8 bytes long");
    if ((flag & flags.ack) !== 0) this.#pings.shift()?.();
    else this.#events.send(frame(frameTypes.ping, flags.ack, 0, payload));
  }

  #takeGoAway(payload: Buffer): void {
    if (payload.length < 8) throw new HttpSyntaxError("a GOAWAY is cut off");
    const last = payload.readUInt32BE(0) & 0x7f_ff_ff_ff;
    const code = payload.readUInt32BE(4);
    this.#goAway(last, `the server takes no more requests${code === errorCodes.none ? "" : `: ${errorName(code)}`}`);
    if (code === errorCodes.none) return;
    this.end(new ConnectionLostError(`the server ended the connection: ${errorName(code)}`));
    this.#events.drained();
  }

  /** @param last the last stream whose request is processed */
  #goAway(last: number, words: string): void {
    this.#isRetired = true;
    const refused = this.#streams.values().filter(({ id }) => id > last);
    for (const { id } of refused) this.#streams.delete(id);
    const error = new StreamResetError(errorCodes.refusedStream, words);
    for (const stream of [...refused, ...this.#waiting.splice(0)]) stream.end(error);
    this.#events.goAway?.(words);
    this.#next();
  }

  #takeWindow({ stream, payload }: Frame): void {
    if (payload.length !== 4) throw new HttpSyntaxError("a WINDOW_UPDATE is not 4 bytes long");
    const bytes = payload.readUInt32BE(0) & 0x7f_ff_ff_ff;
    if (stream !== 0) {
      const own = this.#streams.get(stream);
      if (own === undefined) return;
      own.body.window += bytes;
      this.#sendOf(own);
      return;
    }
    this.#sendWindow += bytes;
    if (this.#sendWindow > mostWindowBytes) throw new HttpSyntaxError("its window is too large");
    this.#sendAll();
  }

  #takeFields(stream: number, section: HeaderSection | undefined): void {
    if (section === undefined) return;
    const own = this.#open(stream);
    if (own === undefined) return;
    if (!own.takeFields(section.fields)) this.#refuse(own);
    else if (section.endsStream) this.#complete(own);
  }

  /** The response is malformed (RFC 9113 §8.1.1). */
  #refuse(stream: ClientStream): void {
    this.#streams.delete(stream.id);
    this.#events.send(numberFrame(frameTypes.resetStream, stream.id, errorCodes.protocolError));
    stream.end(new StreamResetError(errorCodes.protocolError, "the response has no status"));
    this.#next();
  }

  #takeData(taken: Frame): void {
    const { stream, payload, flag } = taken;
    // Also what belongs to nobody any more has used the window.
    this.#ungranted += payload.length;
    if (this.#ungranted >= this.#limits.connectionWindowBytes / 2) {
      this.#events.send(numberFrame(frameTypes.windowUpdate, 0, this.#ungranted));
      this.#ungranted = 0;
    }
    const own = this.#open(stream);
    if (own === undefined) return;
    const isLast = (flag & flags.endStream) !== 0;
    own.takeData(Buffer.from(unpadded(taken)), payload.length, isLast);
    if (isLast) this.#complete(own);
  }

  #takeReset({ stream, payload }: Frame): void {
    if (payload.length !== 4) throw new HttpSyntaxError("a RST_STREAM is not 4 bytes long");
    const own = this.#open(stream);
    if (own === undefined) return;
    this.#streams.delete(stream);
    own.end(new StreamResetError(payload.readUInt32BE(0)));
    this.#next();
  }

  /** Undefined: the request has ended. */
  #open(id: number): ClientStream | undefined {
    if (id % 2 === 0 || id >= this.#nextStream) throw new HttpSyntaxError("a frame belongs to no request");
    return this.#streams.get(id);
  }

  #complete(stream: ClientStream): void {
    if (!this.#streams.delete(stream.id)) return;
    // The server needs no more of the request.
    if (!stream.body.isSent) {
      this.#events.send(numberFrame(frameTypes.resetStream, stream.id, errorCodes.cancel));
    }
    stream.end(undefined);
    this.#next();
  }
}
