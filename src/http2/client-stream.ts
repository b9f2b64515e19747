import { errorCodes } from "./frames.ts";
import type { RequestBody } from "./request-body.ts";
import { HttpSyntaxError } from "./syntax-error.ts";

/** Receives a request's response. Its methods are called synchronously and must not throw. */
export interface ResponseSink {
  /** The headers, and then the trailers if there are any. Interim (1xx) responses are left out. */
  fields(fields: ReadonlyMap<string, string>): void;
  /** A piece of the body, to be kept. */
  data(piece: Buffer): void;
  /** The last call. Undefined: the response is complete. */
  end(error: Error | undefined): void;
}

/** What the server may send ahead of the reader. */
export interface StreamWindow {
  readonly bytes: number;
  /** The reader says what it has used ({@link ClientStream.consumed}); otherwise all is used as it comes. */
  readonly holdsBack: boolean;
}

export interface StreamEffects {
  reset(code: number): void;
  /** The server may send so much more. */
  grant(bytes: number): void;
}

/** A request and its response. */
export class ClientStream {
  /** 0: it waits for others to end. */
  id = 0;
  readonly body: RequestBody;
  readonly #sink: ResponseSink;
  readonly #window: StreamWindow;
  readonly #effects: StreamEffects;
  /** Bytes that the server has sent of its window. */
  #sent = 0;
  /** Bytes of these that were used. */
  #used = 0;
  #hasHeaders = false;
  #hasEnded = false;

  constructor(sink: ResponseSink, body: RequestBody, window: StreamWindow, effects: StreamEffects) {
    this.#sink = sink;
    this.body = body;
    this.#window = window;
    this.#effects = effects;
  }

  /** Gives the response up; its sink is called no more. */
  cancel(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#effects.reset(errorCodes.cancel);
  }

  /** The reader has used so many bytes of the body. */
  consumed(bytes: number): void {
    if (this.#hasEnded) return;
    this.#used += bytes;
    if (this.#used < this.#window.bytes / 2) return;
    this.#sent -= this.#used;
    this.#effects.grant(this.#used);
    this.#used = 0;
  }

  /** @returns false for headers without a status */
  takeFields(fields: ReadonlyMap<string, string>): boolean {
    const status = fields.get(":status") ?? "";
    if (/^1\d\d$/u.test(status)) return true;
    if (!this.#hasHeaders && !/^\d{3}$/u.test(status)) return false;
    this.#hasHeaders = true;
    this.#sink.fields(fields);
    return true;
  }

  /**
   * @param framed the bytes of the window that it has used, padding included
   * @throws HttpSyntaxError when the server was not allowed to send as much, or has sent no headers
   */
  takeData(piece: Buffer, framed: number, isLast: boolean): void {
    if (!this.#hasHeaders) throw new HttpSyntaxError("a body came before the headers");
    this.#sent += framed;
    if (this.#sent > this.#window.bytes) throw new HttpSyntaxError("the server sends more than it may");
    if (piece.length > 0) this.#sink.data(piece);
    const padding = framed - piece.length;
    if (!isLast) this.consumed(this.#window.holdsBack ? padding : framed);
  }

  end(error: Error | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#sink.end(error);
  }
}
