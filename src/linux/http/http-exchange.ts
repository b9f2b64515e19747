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
  /** Longest request body in bytes; 64 MiB unless given. */
  readonly maxBodyBytes?: number;
  /** What is answered when a handler threw; {@link errorResponse} unless given. */
  readonly errorAnswer?: (error: unknown) => ApiResponse;
  /** Told of what a handler threw besides `PodwrightError`, and of streams that broke off. */
  readonly onError?: (error: unknown, request: Pick<ApiRequest, "method" | "path">) => void;
}

/** One request and its answer, over HTTP/1.1 or HTTP/2. */
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
    // The connection's errors show as its end.
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
      // What is still to come of the body is not waited for.
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
    // The client learns at once that its request was taken, though the first item may be far off.
    if (this.#outgoing instanceof ServerResponse) this.#outgoing.flushHeaders();
    await this.#stream(body, signal);
    this.#outgoing.end();
  }

  /** Asks for an item only when the client has taken the one before; ends with the items, the client or the server. */
  async #stream(items: AsyncIterable<string | Uint8Array>, signal: AbortSignal): Promise<void> {
    const iterator = items[Symbol.asyncIterator]();
    try {
      while (!signal.aborted) {
        const next = await unlessAborted(iterator.next(), signal);
        if (next === undefined || next.done === true) return;
        await this.#write(next.value, signal);
      }
    } finally {
      // Not awaited: an iterator that waits for its next item only notices after that. Does nothing to one that ended.
      void Promise.resolve(iterator.return?.()).catch((error: unknown) => this.#report(error));
    }
  }

  #writeHead(status: number, headers: Readonly<Record<string, string>>): void {
    // The two classes have this method alike, but not in one type.
    if (this.#outgoing instanceof ServerResponse) this.#outgoing.writeHead(status, headers);
    else this.#outgoing.writeHead(status, headers);
  }

  /**
   * Resolves when more is to be written: at once while little waits to be sent, else once all has been, or the signal
   * aborts. That is told by the last piece itself, not by "drain": an HTTP/1.1 answer counts bytes and its socket the
   * characters of a string, so that the one asks for a "drain" of which the other knows nothing.
   */
  async #write(piece: string | Uint8Array, signal: AbortSignal): Promise<void> {
    const sent = Promise.withResolvers<void>();
    const onSent = (error?: Error | null): void => {
      // A piece that cannot be sent is followed by the connection's end, and so by the signal.
      if (!(error instanceof Error)) sent.resolve();
    };
    // The two classes have this method alike, but not in one type.
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

/** Path and query of a request's target, which names a host too when the client took this server for a proxy. */
export function splitTarget(target = "/"): { readonly path: string; readonly query: URLSearchParams } {
  const own = target.replace(/^https?:\/\/[^/?#]*/iu, "");
  const queryStart = own.indexOf("?");
  const path = queryStart < 0 ? own : own.slice(0, queryStart);
  return {
    path: path === "" ? "/" : path,
    query: new URLSearchParams(queryStart < 0 ? "" : own.slice(queryStart + 1)),
  };
}

/** The result of the work, or undefined as soon as the signal aborts. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  using _signal = onAbort(signal, () => resolve(undefined));
  return await Promise.race([work, promise]);
}
