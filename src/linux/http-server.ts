import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { eitherSignal, onAbort } from "../base/abort.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { ApiHandler, ApiRequest, ApiResponse, ApiServer } from "../ports/api-server.ts";
import { errorResponse } from "./api-errors.ts";
import { systemClock } from "./clock.ts";
import { readBody } from "./http-body.ts";

export interface HttpServerOptions {
  /** Longest request body in bytes; 64 MiB unless given. */
  readonly maxBodyBytes?: number;
  /** How long requests under way may take to end after `close`, in milliseconds; 1,000 unless given. */
  readonly closeGraceMs?: number;
  /** Told of what a handler threw besides `PodwrightError`, and of streams that broke off. */
  readonly onError?: (error: unknown, request: Pick<ApiRequest, "method" | "path">) => void;
}

/** More than this many clients at a time are turned away. */
const maxConnections = 1_024;

/**
 * Serves HTTP/1.1 wherever `listen` makes the server listen.
 * @param listen resolves, once the server listens, to its address and to what takes that away after the server closed
 */
export async function serveHttp(
  handler: ApiHandler,
  options: HttpServerOptions,
  listen: (server: Server) => Promise<{ readonly address: string; readonly remove?: () => Promise<void> }>,
): Promise<ApiServer> {
  const { closeGraceMs = 1_000 } = options;
  const closing = new AbortController();
  const server = createServer((incoming, outgoing) => {
    // Clients connect for each request; so none is left idle when the server closes.
    outgoing.shouldKeepAlive = false;
    void new Exchange(incoming, outgoing, options).run(handler, closing.signal);
  });
  server.maxConnections = maxConnections;
  const { address, remove } = await listen(server);

  async function close(): Promise<void> {
    closing.abort(new Error("the server is closing"));
    const closed = once(server, "close");
    server.close();
    using _grace = systemClock.timer(`requests at ${address} to end`, closeGraceMs, () => server.closeAllConnections());
    await closed;
    await remove?.();
  }
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= close());
  return { address, close: closeOnce, [Symbol.asyncDispose]: closeOnce };
}

/** One request and its answer. */
class Exchange {
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly #options: HttpServerOptions;
  readonly #method: string;
  #path: string;
  #body: Promise<string> | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, options: HttpServerOptions) {
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
      if (!this.#outgoing.writableFinished) client.abort(new Error("the client went away"));
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
      // Half an answer must not look like a whole one.
      if (this.#outgoing.headersSent) this.#outgoing.destroy();
      else await this.#send(errorResponse(error), signal);
    }
  }

  #request(signal: AbortSignal): ApiRequest {
    const target = this.#incoming.url ?? "/";
    const queryStart = target.indexOf("?");
    this.#path = queryStart < 0 ? target : target.slice(0, queryStart);
    if (!this.#path.startsWith("/")) throw new PodwrightError(ExitCode.badInput, "the request's path is not absolute");
    return {
      method: this.#method,
      path: this.#path,
      query: new URLSearchParams(queryStart < 0 ? "" : target.slice(queryStart + 1)),
      body: () => (this.#body ??= this.#readBody(signal)),
      signal,
    };
  }

  async #readBody(signal: AbortSignal): Promise<string> {
    const { maxBodyBytes = 64 * 1024 * 1024 } = this.#options;
    const tooLong = (): PodwrightError =>
      new PodwrightError(ExitCode.badInput, `the request's body is longer than ${maxBodyBytes} bytes`);
    if (Number(this.#incoming.headers["content-length"] ?? 0) > maxBodyBytes) throw tooLong();
    try {
      return (await readBody(this.#incoming, maxBodyBytes, tooLong)).toString("utf8");
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  async #send({ status, contentType, body }: ApiResponse, signal: AbortSignal): Promise<void> {
    if (typeof body === "string") {
      this.#outgoing.writeHead(status, { "Content-Type": contentType, "Content-Length": Buffer.byteLength(body) });
      this.#outgoing.end(body);
      return;
    }
    this.#outgoing.writeHead(status, { "Content-Type": contentType });
    // The client learns at once that its request was taken, though the first item may be far off.
    this.#outgoing.flushHeaders();
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
        if (!this.#outgoing.write(next.value)) await drained(this.#outgoing, signal);
      }
    } finally {
      // Not awaited: an iterator that waits for its next item only notices after that. Does nothing to one that ended.
      void Promise.resolve(iterator.return?.()).catch((error: unknown) => this.#report(error));
    }
  }

  #report(error: unknown): void {
    this.#options.onError?.(error, { method: this.#method, path: this.#path });
  }
}

/** The result of the work, or undefined as soon as the signal aborts. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  using _signal = onAbort(signal, () => resolve(undefined));
  return await Promise.race([work, promise]);
}

/** Resolves once the client has taken what was written, or the signal aborts. */
async function drained(outgoing: ServerResponse, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const onDrain = (): void => resolve(undefined);
  outgoing.once("drain", onDrain);
  using _signal = onAbort(signal, onDrain);
  await promise;
  outgoing.off("drain", onDrain);
}
