import { HttpSyntaxError } from "../../http2/syntax-error.ts";

/**
 * Reads an HTTP/1 response (RFC 9112) as far as a probe needs it: the status, the redirect target, and the end of the
 * body. Bodies are counted, and kept only for redirects.
 *
 * Not node:http: a client request with its streams costs three times the CPU time of the connection itself, and a node
 * makes hundreds of probes a second. The input comes from pods, so every length is bounded, and the time proportional to
 * it.
 */
export class HttpResponseReader {
  /** Undefined until the end of the header section; interim (1xx) responses are skipped. */
  head: ResponseHead | undefined;
  /** True once the body has ended by its own framing. */
  isComplete = false;
  /** Bytes of the body so far. */
  bodyBytes = 0;
  readonly #keptBytes: number;
  readonly #kept: Uint8Array[] = [];
  #text = "";
  #body: Body | undefined;

  /** @param keptBytes how much of a redirect's body to keep */
  constructor(keptBytes = 0) {
    this.#keptBytes = keptBytes;
  }

  /** The kept part of a redirect's body; undefined for other responses. */
  get body(): Uint8Array | undefined {
    return this.#isRedirect ? Buffer.concat(this.#kept) : undefined;
  }

  /** @throws HttpSyntaxError for an invalid HTTP/1 response */
  push(chunk: Buffer): void {
    if (this.#body !== undefined) return this.#pushBody(this.#body, chunk);
    const searched = Math.max(0, this.#text.length - 3);
    this.#text += chunk.toString("latin1");
    if (!protocolName.startsWith(this.#text.slice(0, protocolName.length))) {
      throw new HttpSyntaxError("the response is not HTTP");
    }
    emptyLine.lastIndex = searched;
    for (let end = emptyLine.exec(this.#text); end !== null; end = emptyLine.exec(this.#text)) {
      const head = parseHead(this.#text.slice(0, end.index));
      const rest = this.#text.slice(emptyLine.lastIndex);
      if (head.status >= 200 || head.status === switchingProtocols) return this.#begin(head, rest);
      this.#text = rest;
      emptyLine.lastIndex = 0;
    }
    if (this.#text.length > maxHeadBytes) throw new HttpSyntaxError(`its headers exceed ${maxHeadBytes} bytes`);
  }

  /**
   * Ends the connection.
   * @throws HttpSyntaxError for an incomplete response
   */
  end(): void {
    if (this.#body === undefined) throw new HttpSyntaxError("the connection closed before the response");
    if (this.#body.endsWithConnection) this.isComplete = true;
    if (!this.isComplete) throw new HttpSyntaxError("the connection closed early");
  }

  get #isRedirect(): boolean {
    const { status = 0 } = this.head ?? {};
    return status >= 300 && status < 400;
  }

  #begin(head: ParsedHead, rest: string): void {
    this.head = { status: head.status, location: head.location };
    this.#text = "";
    this.#body = head.body;
    this.#pushBody(head.body, Buffer.from(rest, "latin1"));
  }

  #pushBody(body: Body, chunk: Buffer): void {
    if (this.isComplete) return;
    for (const content of body.push(chunk)) {
      const left = this.#isRedirect ? Math.max(0, this.#keptBytes - this.bodyBytes) : 0;
      // Copied, because the chunk's buffer is reused.
      if (left > 0) this.#kept.push(Uint8Array.from(content.subarray(0, left)));
      this.bodyBytes += content.length;
    }
    this.isComplete = body.isComplete;
  }
}

export interface ResponseHead {
  readonly status: number;
  readonly location: string | undefined;
}

interface ParsedHead extends ResponseHead {
  readonly body: Body;
}

interface Body {
  readonly isComplete: boolean;
  readonly endsWithConnection: boolean;
  /** Returns the parts of these bytes that are content. */
  push(chunk: Buffer): readonly Buffer[];
}

const maxHeadBytes = 256 * 1024;
const maxChunkLineBytes = 4 * 1024;
const switchingProtocols = 101;
const statusesWithoutBody: ReadonlySet<number> = new Set([switchingProtocols, 204, 304]);
const protocolName = "HTTP/";
const statusLine = /^HTTP\/1\.\d (\d{3})(?: |$)/;
/** Lines may end without a carriage return (RFC 9112 §2.2). */
const emptyLine = /\n\r?\n/g;

function parseHead(text: string): ParsedHead {
  const [first = "", ...lines] = text.split("\n");
  const status = statusLine.exec(first.trimEnd())?.[1];
  if (status === undefined) throw new HttpSyntaxError("the response is not HTTP/1");
  const fields = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    // A line that begins with a space continues the previous one: not allowed in the fields that count here.
    if (colon <= 0) continue;
    const name = line.slice(0, colon).toLowerCase();
    if (!fieldsRead.has(name)) continue;
    const value = line.slice(colon + 1).trim();
    const values = fields.get(name);
    if (values === undefined) fields.set(name, [value]);
    else values.push(value);
  }
  return { status: Number(status), location: fields.get("location")?.[0], body: bodyOf(Number(status), fields) };
}

const fieldsRead: ReadonlySet<string> = new Set(["location", "content-length", "transfer-encoding"]);

/** How long the body is (RFC 9112 §6.3). */
function bodyOf(status: number, fields: ReadonlyMap<string, readonly string[]>): Body {
  if (statusesWithoutBody.has(status)) return new SizedBody(0);
  const codings = fields.get("transfer-encoding");
  if (codings !== undefined) {
    if (codings.length === 1 && codings[0]?.toLowerCase() === "chunked") return new ChunkedBody();
    throw new HttpSyntaxError("the response has an unknown transfer encoding");
  }
  const lengths = fields.get("content-length");
  if (lengths === undefined) return new OpenBody();
  const said = new Set(lengths.flatMap((value) => value.split(",").map((length) => length.trim())));
  const [length = ""] = said;
  if (said.size > 1 || !/^\d{1,15}$/.test(length)) {
    throw new HttpSyntaxError("the response has an invalid content length");
  }
  return new SizedBody(Number(length));
}

class SizedBody implements Body {
  readonly endsWithConnection = false;
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isComplete(): boolean {
    return this.#left === 0;
  }

  push(chunk: Buffer): readonly Buffer[] {
    const taken = chunk.subarray(0, this.#left);
    this.#left -= taken.length;
    return [taken];
  }
}

class OpenBody implements Body {
  readonly endsWithConnection = true;
  readonly isComplete = false;

  push(chunk: Buffer): readonly Buffer[] {
    return [chunk];
  }
}

const newline = 0x0a;

/** RFC 9112 §7.1. Extensions and trailers are skipped. */
class ChunkedBody implements Body {
  readonly endsWithConnection = false;
  isComplete = false;
  #part: "size" | "content" | "contentEnd" | "trailers" = "size";
  #line = "";
  #left = 0;

  push(chunk: Buffer): readonly Buffer[] {
    const content: Buffer[] = [];
    for (let at = 0; at < chunk.length && !this.isComplete;) {
      if (this.#part === "content") {
        const taken = Math.min(chunk.length - at, this.#left);
        content.push(chunk.subarray(at, at + taken));
        at += taken;
        this.#left -= taken;
        if (this.#left === 0) this.#part = "contentEnd";
        continue;
      }
      const end = chunk.indexOf(newline, at);
      const until = end === -1 ? chunk.length : end;
      if (this.#line.length + until - at > maxChunkLineBytes) throw new HttpSyntaxError("a chunk's line is too long");
      this.#line += chunk.toString("latin1", at, until);
      at = until + 1;
      if (end !== -1) this.#takeLine();
    }
    return content;
  }

  #takeLine(): void {
    const line = this.#line.trimEnd();
    this.#line = "";
    switch (this.#part) {
      case "size": {
        const size = /^([0-9a-f]{1,12})\s*(?:;|$)/i.exec(line)?.[1];
        if (size === undefined) throw new HttpSyntaxError("a chunk has no length");
        this.#left = Number.parseInt(size, 16);
        this.#part = this.#left === 0 ? "trailers" : "content";
        return;
      }
      case "contentEnd":
        if (line !== "") throw new HttpSyntaxError("a chunk is longer than its declared size");
        this.#part = "size";
        return;
      default:
        this.isComplete = line === "";
    }
  }
}
