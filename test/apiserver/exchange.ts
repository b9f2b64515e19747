import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { TLSSocket } from "node:tls";
import { gzipSync } from "node:zlib";
import { ApiError, badRequest } from "./api-error.ts";
import { anonymous, type User } from "./authn.ts";
import type { Fields, Json } from "./objects.ts";
import { readProtobuf } from "./protobuf.ts";

const maxBodyBytes = 3 << 20;

/** One request and its answer, over HTTP/1.1 or HTTP/2. */
export class Exchange {
  readonly method: string;
  readonly url: URL;
  /** The sender, once known. */
  user: User = anonymous;
  /** The response's status. */
  code: number | undefined;
  /** The response's warnings. */
  readonly warnings: string[] = [];
  #losesAnswer = false;
  readonly #request: IncomingMessage | Http2ServerRequest;
  readonly #response: ServerResponse | Http2ServerResponse;

  constructor(request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse) {
    this.#request = request;
    this.#response = response;
    this.method = request.method ?? "GET";
    this.url = new URL(request.url ?? "/", "https://localhost");
  }

  get query(): URLSearchParams {
    return this.url.searchParams;
  }

  get headers(): IncomingMessage["headers"] {
    return this.#request.headers;
  }

  /** Raw headers: names and values alternate. */
  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders;
  }

  /** A query flag: `true` or `1`. */
  flag(name: string): boolean {
    return ["true", "1"].includes(this.query.get(name) ?? "");
  }

  get socket(): TLSSocket {
    return this.#request.socket as TLSSocket;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(",") : value;
  }

  get httpVersion(): string {
    return this.#request.httpVersion;
  }

  /** The media type of the body, without parameters. */
  get contentType(): string {
    return (this.header("content-type") ?? "application/json").split(";")[0]?.trim() ?? "";
  }

  /** The body as it arrives. */
  chunks(): AsyncIterable<Buffer> {
    return this.#request;
  }

  /**
   * The body as JSON; undefined if empty.
   * @throws ApiError 400, 413, or 415 if it is not JSON
   */
  async body(): Promise<Json | undefined> {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of this.chunks()) {
      size += chunk.length;
      if (size > maxBodyBytes) {
        throw new ApiError(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
      }
      chunks.push(chunk);
    }
    if (size === 0) return undefined;
    if (this.contentType === "application/vnd.kubernetes.protobuf") return readProtobuf(Buffer.concat(chunks));
    if (!/^application\/(?:json|[a-z-]+\+json)$/.test(this.contentType)) {
      throw new ApiError(
        415,
        "UnsupportedMediaType",
        `the body of the request was in an unknown format - accepted media types include: application/json (it was ${this.contentType})`,
      );
    }
    try {
      return JSON.parse(Buffer.concat(chunks).toString()) as Json;
    } catch (error) {
      throw badRequest(`the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  send(code: number, body: Fields, headers: Readonly<Record<string, string>> = {}): void {
    this.sendText(code, JSON.stringify(body), { "content-type": "application/json", ...headers });
  }

  sendText(code: number, text: string, headers: Readonly<Record<string, string>>): void {
    // Like the real server: only large responses.
    const zipped = text.length > 128 * 1024 && (this.header("accept-encoding") ?? "").includes("gzip");
    const data = zipped ? gzipSync(text, { level: 1 }) : Buffer.from(text);
    this.#head(code, {
      ...headers,
      ...(zipped ? { "content-encoding": "gzip" } : {}),
      "content-length": String(data.length),
    });
    this.#end(data);
  }

  /** Responds with an error's `Status`. */
  sendError(error: ApiError): void {
    const seconds = error.options.retryAfterSeconds;
    this.send(error.code, error.toStatus(), seconds === undefined ? {} : { "retry-after": String(seconds) });
  }

  /** Begins a streamed response. */
  startStream(code = 200, headers: Readonly<Record<string, string>> = { "content-type": "application/json" }): void {
    this.#head(code, headers);
    if ("flushHeaders" in this.#response) this.#response.flushHeaders();
  }

  /** @returns bytes that the client has not read yet */
  write(data: string | Buffer): number {
    if (this.isOver) return 0;
    // Both classes have this method, but no common type.
    (this.#response as ServerResponse).write(data);
    return this.#response.writableLength ?? 0;
  }

  endStream(): void {
    this.#end(undefined);
  }

  /** From now on a response breaks the connection instead of arriving. */
  loseAnswer(): void {
    this.#losesAnswer = true;
  }

  /** Resets the HTTP/2 stream, or the whole HTTP/1.1 connection. */
  reset(): void {
    if ("stream" in this.#response) this.#response.stream.close(2 /* INTERNAL_ERROR */);
    else this.#response.destroy();
  }

  /** Called at the end of the exchange, successful or not. */
  onClose(listener: () => void): void {
    this.#response.once("close", listener);
  }

  get isOver(): boolean {
    const response = this.#response;
    if ("stream" in response && (response.stream.closed || response.stream.destroyed)) return true;
    return response.destroyed || response.writableEnded;
  }

  #head(code: number, headers: Readonly<Record<string, string>>): void {
    this.code = code;
    const warning = this.warnings.map((each) => `299 - ${JSON.stringify(each)}`).join(", ");
    const all = warning === "" ? headers : { ...headers, warning };
    if (this.#losesAnswer) this.reset();
    if (!this.isOver) (this.#response as ServerResponse).writeHead(code, all);
  }

  #end(data: Buffer | undefined): void {
    if (this.isOver) return;
    if (data === undefined || this.method === "HEAD") this.#response.end();
    else this.#response.end(data);
  }
}
