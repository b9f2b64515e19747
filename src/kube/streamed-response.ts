import type { ClientStream, ResponseSink } from "../http2/client-stream.ts";

/** Receives a response. HTTP/2's flow control holds back what is not read of its body. */
export class StreamedResponse implements ResponseSink {
  /** Set as soon as the request is sent. */
  stream: ClientStream | undefined;
  readonly #head = Promise.withResolvers<ReadonlyMap<string, string>>();
  readonly #pieces: Buffer[] = [];
  #end: { readonly error: Error | undefined } | undefined;
  #more: (() => void) | undefined;
  readonly #onEnd: () => void;

  /** @param onEnd called when nothing more will come */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** The headers; rejects with the stream's error. */
  get head(): Promise<ReadonlyMap<string, string>> {
    return this.#head.promise;
  }

  fields(fields: ReadonlyMap<string, string>): void {
    // Trailers say nothing more.
    this.#head.resolve(fields);
  }

  data(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#more?.();
  }

  end(error: Error | undefined): void {
    this.#finish(error);
    this.#head.reject(error ?? new Error("the connection was closed without a response"));
  }

  /** Gives the response up. */
  abort(): void {
    this.stream?.cancel();
    this.#pieces.length = 0;
    this.end(new Error("the request was canceled"));
  }

  /**
   * The body, to be read once; throws the signal's reason, or the stream's error.
   * @param failed what a stream's error is to the reader
   */
  async *body(signal: AbortSignal, failed: (error: Error) => Error): AsyncGenerator<Uint8Array, undefined> {
    try {
      for (;;) {
        signal.throwIfAborted();
        const piece = this.#pieces.shift();
        if (piece !== undefined) {
          this.stream?.consumed(piece.length);
          yield piece;
        } else if (this.#end === undefined) {
          const { promise, resolve } = Promise.withResolvers<void>();
          this.#more = resolve;
          await promise;
        } else if (this.#end.error === undefined) {
          return undefined;
        } else {
          throw failed(this.#end.error);
        }
      }
    } finally {
      this.stream?.cancel();
      this.#finish(undefined);
    }
  }

  #finish(error: Error | undefined): void {
    if (this.#end === undefined) this.#onEnd();
    this.#end ??= { error };
    this.#more?.();
  }
}
