import { type IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { eitherSignal, onAbort, orAborted } from "../../base/abort.ts";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import type { ApiHandler, ApiRequest, ApiResponse } from "../../ports/api-server.ts";
import { BodyTooLong, errorResponse } from "./api-errors.ts";
import { readBody } from "./http-body.ts";

export type Incoming = IncomingMessage | Http2ServerRequest;
export type Outgoing = ServerResponse | Http2ServerResponse;

export interface ExchangeOptions {
  /** Maximum request body in bytes; default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Maps a handler's error to a response; default {@link errorResponse}. */
  readonly errorAnswer?: (error: unknown) => ApiResponse;
  /** Called with handler errors other than `PodwrightError`, and with streams that failed. */
  readonly onError?: (error: unknown, request: Pick<ApiRequest, "method" | "path">) => void;
}

/** One request and its response, over HTTP/1.1 or HTTP/2. */
export class Exchange {
  readonly #incoming: Incoming;
  readonly #outgoing: Outgoing;
  readonly #options: ExchangeOptions;
  readonly #method: string;
  #path: string;
  #body: Promise<string> | undefined;

  constructor(incoming: Incoming, outgoing: Outgoing, options: ExchangeOptions) {
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#method = incoming.method ?? "GET";
    this.#path = incoming.url ?? "/";
  }

  /** Never rejects. */
  async run(handler: ApiHandler, closing: AbortSignal): Promise<void> {
    const client = new AbortController();
    this.#outgoing.once("close", () => {
      if (!this.#outgoing.writableEnded) client.abort(new Error("the client disconnected"));
    });
    // Errors of the connection appear as its end.
    this.#outgoing.on("error", () => {});
    using either = eitherSignal(client.signal, closing);
    const { signal } = either;
    try {
      await this.#send(await handler(this.#request(signal)), signal);
    } catch (error) {
      if (client.signal.aborted) return;
      if (!(error instanceof PodwrightError) || this.#outgoing.headersSent) this.#report(error);
      // A truncated response must not look complete.
      if (this.#outgoing.headersSent) this.#breakOff();
      else await this.#refuse(error, signal);
    }
  }

  async #refuse(error: unknown, signal: AbortSignal): Promise<void> {
    const { errorAnswer = errorResponse } = this.#options;
    if (error instanceof BodyTooLong && this.#outgoing instanceof ServerResponse) {
      // The rest of the body is not awaited.
      this.#outgoing.shouldKeepAlive = false;
    }
    await this.#send(errorAnswer(error), signal);
  }

  #request(signal: AbortSignal): ApiRequest {
    const { path, query } = splitTarget(this.#incoming.url);
    this.#path = path;
    if (!this.#path.startsWith("/")) throw new PodwrightError(ExitCode.badInput, "the request's path is not absolute");
    return {
      method: this.#method,
      path: this.#path,
      query,
      body: () => (this.#body ??= this.#readBody(signal)),
      signal,
    };
  }

  async #readBody(signal: AbortSignal): Promise<string> {
    const { maxBodyBytes = 64 * 1024 * 1024 } = this.#options;
    const tooLong = (): PodwrightError => new BodyTooLong(maxBodyBytes);
    if (Number(this.#incoming.headers["content-length"] ?? 0) > maxBodyBytes) throw tooLong();
    try {
      return (await readBody(this.#incoming, maxBodyBytes, tooLong)).toString("utf8");
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  async #send({ status, contentType, headers, body }: ApiResponse, signal: AbortSignal): Promise<void> {
    const described = { ...headers, "Content-Type": contentType };
    if (typeof body === "string") {
      this.#writeHead(status, { ...described, "Content-Length": String(Buffer.byteLength(body)) });
      this.#outgoing.end(body);
      return;
    }
    this.#writeHead(status, described);
    // Sends the headers at once, because the first item may take long.
    if (this.#outgoing instanceof ServerResponse) this.#outgoing.flushHeaders();
    await this.#stream(body, signal);
    this.#outgoing.end();
  }

  /**
   * Requests an item only after the client has taken the previous one; ends with the items, the client or the server.
   */
  async #stream(items: AsyncIterable<string | Uint8Array>, signal: AbortSignal): Promise<void> {
    const iterator = items[Symbol.asyncIterator]();
    try {
      while (!signal.aborted) {
        const next = await unlessAborted(iterator.next(), signal);
        if (next === undefined || next.done === true) return;
        await this.#write(next.value, signal);
      }
    } finally {
      // Not awaited: an iterator that waits for its next item notices only afterwards. No effect on one that has ended.
      void Promise.resolve(iterator.return?.()).catch((error: unknown) => this.#report(error));
    }
  }

  #writeHead(status: number, headers: Readonly<Record<string, string>>): void {
    // Both classes have this method, but no common type.
    if (this.#outgoing instanceof ServerResponse) this.#outgoing.writeHead(status, headers);
    else this.#outgoing.writeHead(status, headers);
  }

  /**
   * Resolves when more can be written: at once while little is buffered, else when everything has been sent or the
   * signal aborts. It waits for the write's callback, not for "drain": an HTTP/1.1 response counts bytes and its socket
   * characters, so a "drain" may be expected that never comes.
   */
  async #write(piece: string | Uint8Array, signal: AbortSignal): Promise<void> {
    const sent = Promise.withResolvers<void>();
    const onSent = (error?: Error | null): void => {
      // A failed write is followed by the end of the connection, and so by the signal.
      if (!(error instanceof Error)) sent.resolve();
    };
    // Both classes have this method, but no common type.
    const takesMore =
      this.#outgoing instanceof ServerResponse
        ? this.#outgoing.write(piece, onSent)
        : this.#outgoing.write(piece, onSent);
    if (!takesMore) await orAborted(sent.promise, signal);
  }

  #breakOff(): void {
    if (this.#outgoing instanceof ServerResponse) this.#outgoing.destroy();
    else this.#outgoing.stream.destroy();
  }

  #report(error: unknown): void {
    this.#options.onError?.(error, { method: this.#method, path: this.#path });
  }
}

/** Path and query of a request target. It contains a host when the client took this server for a proxy. */
export function splitTarget(target = "/"): { readonly path: string; readonly query: URLSearchParams } {
  const own = target.replace(/^https?:\/\/[^/?#]*/iu, "");
  const queryStart = own.indexOf("?");
  const path = queryStart < 0 ? own : own.slice(0, queryStart);
  return {
    path: path === "" ? "/" : path,
    query: new URLSearchParams(queryStart < 0 ? "" : own.slice(queryStart + 1)),
  };
}

/** The result of `work`, or undefined as soon as the signal aborts. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  using _signal = onAbort(signal, () => resolve(undefined));
  return await Promise.race([work, promise]);
}
