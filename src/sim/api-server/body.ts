/** A response body on the client's side: received bytes, and how it ends. */
export class Body implements AsyncIterable<Uint8Array> {
  readonly #encoder = new TextEncoder();
  readonly #chunks: Uint8Array[] = [];
  readonly #onLeft: () => void;
  #end: { readonly error: unknown } | "well" | undefined;
  #wake: (() => void) | undefined;

  /** @param onLeft the reader has left, or has read everything */
  constructor(onLeft: () => void) {
    this.#onLeft = onLeft;
  }

  push(text: string): void {
    if (this.#end !== undefined) return;
    this.#chunks.push(this.#encoder.encode(text));
    this.#wake?.();
  }

  /** Ends the body. */
  end(): void {
    this.#end ??= "well";
    this.#wake?.();
  }

  /** The reader gets the error after the data before it. */
  fail(error: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** Like {@link fail}, but without the data before it. */
  abort(error: unknown): void {
    this.#chunks.length = 0;
    this.fail(error);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          yield chunk;
          continue;
        }
        if (this.#end === "well") return;
        if (this.#end !== undefined) throw this.#end.error;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.#onLeft();
    }
  }
}
