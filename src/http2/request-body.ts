import { flags, frameTypes, headerBytes, writeHeader } from "./frames.ts";

const nothing = Buffer.alloc(0);

/** A request as far as it is not sent: its headers, then its body as the server's windows allow. */
export class RequestBody {
  /** Bytes of the body that the server takes on this stream. */
  window = 0;
  #headers: Buffer | undefined;
  #body: Buffer;

  constructor(headers: Buffer, body: Buffer) {
    this.#headers = headers;
    this.#body = body;
  }

  /** Puts bytes before the headers, as long as these are not sent. */
  prepend(bytes: Buffer): void {
    if (this.#headers !== undefined) this.#headers = Buffer.concat([bytes, this.#headers]);
  }

  get isSent(): boolean {
    return this.#headers === undefined && this.#body.length === 0;
  }

  /**
   * The next frames; undefined: the server takes nothing now, or all is sent.
   * @param connectionWindow what the server takes on the connection
   */
  take(
    stream: number,
    maxFrameBytes: number,
    connectionWindow: number,
  ): { readonly frames: Buffer; readonly ofWindow: number } | undefined {
    const most = Math.max(0, Math.min(this.window, connectionWindow, this.#body.length));
    const headers = this.#headers;
    if (headers === undefined && most === 0) return undefined;
    const headerFrames = headers === undefined ? 0 : Math.ceil(headers.length / maxFrameBytes);
    const dataFrames = Math.ceil(most / maxFrameBytes);
    const headLength = headers === undefined ? 0 : headers.length + headerFrames * headerBytes;
    const frames = Buffer.allocUnsafe(headLength + most + dataFrames * headerBytes);
    let at = 0;
    const put = (type: number, flag: number, payload: Buffer): void => {
      writeHeader(frames, at, { type, flag, stream }, payload.length);
      payload.copy(frames, at + headerBytes);
      at += headerBytes + payload.length;
    };
    if (headers !== undefined) {
      for (let from = 0; from < headers.length; from += maxFrameBytes) {
        const part = headers.subarray(from, from + maxFrameBytes);
        const isLast = from + maxFrameBytes >= headers.length;
        const ends = from === 0 && this.#body.length === 0 ? flags.endStream : 0;
        put(from === 0 ? frameTypes.headers : frameTypes.continuation, (isLast ? flags.endHeaders : 0) | ends, part);
      }
      this.#headers = undefined;
    }
    for (let from = 0; from < most; from += maxFrameBytes) {
      const part = this.#body.subarray(from, Math.min(from + maxFrameBytes, most));
      put(frameTypes.data, from + part.length === this.#body.length ? flags.endStream : 0, part);
    }
    // A view of nothing would keep the memory that it is a view of, as long as a watch lasts.
    this.#body = most === this.#body.length ? nothing : this.#body.subarray(most);
    this.window -= most;
    return { frames, ofWindow: most };
  }
}
