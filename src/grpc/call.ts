import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import { Frames } from "./frames.ts";
import { RpcError } from "../ports/rpc.ts";
import { statusError } from "./status.ts";

/** Cancels a call from this side. */
export function cancel(stream: ClientHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL);
}

/** The response side of a call: headers, trailers, and how it ended. */
class Answer {
  readonly #stream: ClientHttp2Stream;
  #head: (IncomingHttpHeaders & IncomingHttpStatusHeader) | undefined;
  #trailers: IncomingHttpHeaders | undefined;

  constructor(stream: ClientHttp2Stream) {
    this.#stream = stream;
    stream.once("response", (headers) => (this.#head = headers));
    stream.once("trailers", (headers) => (this.#trailers = headers));
  }

  /** The call's error; undefined for OK. A status counts, whatever happened to the stream afterwards. */
  end(): RpcError | undefined {
    const head = this.#head;
    if (head?.["grpc-status"] !== undefined) return statusError(head);
    if (this.#trailers?.["grpc-status"] !== undefined) return statusError(this.#trailers);
    if (wasReset(this.#stream)) return new RpcError("Canceled", "the stream was reset");
    if (head === undefined) return new RpcError("Unavailable", "the stream was closed without a response");
    const status = head[":status"];
    if (status !== 200) return new RpcError(codeOfHttp(status), `the response has HTTP status ${status}`);
    const type = head["content-type"] ?? "";
    if (!/^application\/grpc(?:[+;]|$)/u.test(type)) {
      return new RpcError("Internal", `the response has content type ${JSON.stringify(type)}`);
    }
    return statusError({});
  }
}

/**
 * The only message of a response. The stream flows from now on, and is closed when this rejects.
 * @throws RpcError, or the error of Node.js' stream
 */
export async function oneMessage(stream: ClientHttp2Stream, maxBytes: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const answer = new Answer(stream);
  const frames = new Frames(maxBytes);
  let message: Uint8Array | undefined;
  const fail = (error: unknown): void => {
    reject(error);
    cancel(stream);
  };
  stream.on("data", (piece: Buffer) => {
    try {
      frames.add(piece);
      const found = frames.take();
      if (found === undefined) return;
      if (message !== undefined) throw new RpcError("Unimplemented", "the response has more than one message");
      message = found;
    } catch (error) {
      fail(error);
    }
  });
  const end = (): void => {
    const error = answer.end();
    if (error !== undefined) reject(error);
    else if (!frames.isEmpty) reject(new RpcError("Internal", "the response ends within a message"));
    else if (message === undefined) reject(new RpcError("Unimplemented", "the response has no message"));
    else resolve(message);
  };
  stream.once("end", end);
  // Never removed: an error without a listener would end the process.
  stream.on("error", (error) => reject(wasReset(stream) ? (answer.end() ?? error) : error));
  // A stream that was reset without an error emits no "end".
  stream.once("close", end);
  return await promise;
}

/**
 * The messages of a response as they arrive. HTTP/2's flow control holds back what is not read.
 * @throws RpcError, or the error of Node.js' stream
 */
export async function* messagesOf(stream: ClientHttp2Stream, maxBytes: number): AsyncGenerator<Uint8Array, undefined> {
  const answer = new Answer(stream);
  const frames = new Frames(maxBytes);
  let isWhole = false;
  // Between two reads there is no other listener.
  stream.on("error", () => {});
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      frames.add(piece);
      for (let message = frames.take(); message !== undefined; message = frames.take()) yield message;
    }
    isWhole = true;
  } catch (error) {
    if (error instanceof RpcError || !wasReset(stream)) throw error;
    throw answer.end() ?? error;
  } finally {
    if (!isWhole) cancel(stream);
  }
  const error = answer.end();
  if (error !== undefined) throw error;
  if (!frames.isEmpty) throw new RpcError("Internal", "the response ends within a message");
  return undefined;
}

/** By the peer's timer, or with its connection. */
function wasReset({ rstCode }: ClientHttp2Stream): boolean {
  return rstCode === constants.NGHTTP2_CANCEL;
}

/** https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md */
function codeOfHttp(status: number | undefined): RpcError["code"] {
  switch (status) {
    case 400:
      return "Internal";
    case 401:
      return "Unauthenticated";
    case 403:
      return "PermissionDenied";
    case 404:
      return "Unimplemented";
    case 429:
    case 502:
    case 503:
    case 504:
      return "Unavailable";
    default:
      return "Unknown";
  }
}
