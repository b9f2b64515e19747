import { StreamResetError } from "../http2/errors.ts";
import { errorCodes } from "../http2/frames.ts";
import type { ClientStream, ResponseSink } from "../http2/client-stream.ts";
import { RpcError } from "../ports/rpc.ts";
import { Frames } from "./frames.ts";
import { statusError } from "./status.ts";

/** The response side of a call: headers, trailers, and how it ended. */
class Answer {
  #head: ReadonlyMap<string, string> | undefined;
  #trailers: ReadonlyMap<string, string> | undefined;

  take(fields: ReadonlyMap<string, string>): void {
    if (this.#head === undefined) this.#head = fields;
    else this.#trailers = fields;
  }

  /** The call's error; undefined for OK. A status counts, whatever happened to the stream afterwards. */
  end(error: Error | undefined): Error | undefined {
    const head = this.#head;
    if (head?.has("grpc-status") === true) return statusError(head);
    if (this.#trailers?.has("grpc-status") === true) return statusError(this.#trailers);
    // By the peer's timer, or with its connection.
    if (error instanceof StreamResetError && error.code === errorCodes.cancel) {
      return new RpcError("Canceled", "the stream was reset", { cause: error });
    }
    if (error !== undefined) return error;
    if (head === undefined) return new RpcError("Unavailable", "the stream was closed without a response");
    const status = Number(head.get(":status"));
    if (status !== 200) return new RpcError(codeOfHttp(status), `the response has HTTP status ${status}`);
    const type = head.get("content-type") ?? "";
    if (!/^application\/grpc(?:[+;]|$)/u.test(type)) {
      return new RpcError("Internal", `the response has content type ${JSON.stringify(type)}`);
    }
    return statusError(noFields);
  }
}

const noFields: ReadonlyMap<string, string> = new Map();

/** Receives a response of one message. */
export class OneMessage implements ResponseSink {
  /** @throws RpcError, StreamResetError, or the connection's error */
  readonly message: Promise<Uint8Array>;
  /** Set as soon as the request is sent. */
  stream: ClientStream | undefined;
  readonly #resolve: (message: Uint8Array) => void;
  readonly #reject: (error: unknown) => void;
  readonly #answer = new Answer();
  readonly #frames: Frames;
  #found: Uint8Array | undefined;

  constructor(maxBytes: number) {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    this.message = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#frames = new Frames(maxBytes);
  }

  fields(fields: ReadonlyMap<string, string>): void {
    this.#answer.take(fields);
  }

  data(piece: Buffer): void {
    try {
      this.#frames.add(piece);
      const found = this.#frames.take();
      if (found === undefined) return;
      if (this.#found !== undefined) throw new RpcError("Unimplemented", "the response has more than one message");
      this.#found = found;
    } catch (error) {
      this.giveUp(error);
    }
  }

  /** No more of the response is wanted: the message rejects with the error. */
  giveUp(error: unknown): void {
    this.#reject(error);
    this.stream?.cancel();
  }

  end(error: Error | undefined): void {
    const problem = this.#answer.end(error);
    if (problem !== undefined) this.#reject(problem);
    else if (!this.#frames.isEmpty) this.#reject(new RpcError("Internal", "the response ends within a message"));
    else if (this.#found === undefined) this.#reject(new RpcError("Unimplemented", "the response has no message"));
    else this.#resolve(this.#found);
  }
}

/** Receives a response of many messages. HTTP/2's flow control holds back what is not read. */
export class Messages implements ResponseSink {
  /** Set as soon as the request is sent. */
  stream: ClientStream | undefined;
  readonly #answer = new Answer();
  readonly #frames: Frames;
  readonly #queue: Uint8Array[] = [];
  #ungranted = 0;
  #end: { readonly error: unknown } | undefined;
  #waiting: { resolve(message: Uint8Array | undefined): void; reject(error: unknown): void } | undefined;

  constructor(maxBytes: number) {
    this.#frames = new Frames(maxBytes);
  }

  fields(fields: ReadonlyMap<string, string>): void {
    this.#answer.take(fields);
  }

  data(piece: Buffer): void {
    if (this.#end !== undefined) return;
    this.#ungranted += piece.length;
    try {
      this.#frames.add(piece);
      for (let message = this.#frames.take(); message !== undefined; message = this.#frames.take()) {
        this.#queue.push(message);
      }
    } catch (error) {
      this.#finish(error);
      this.stream?.cancel();
      return;
    }
    this.#give();
  }

  end(error: Error | undefined): void {
    const problem = this.#answer.end(error);
    if (problem !== undefined || this.#frames.isEmpty) this.#finish(problem);
    else this.#finish(new RpcError("Internal", "the response ends within a message"));
  }

  /**
   * The next message; undefined: there are no more. One at a time.
   * @throws RpcError, StreamResetError, or the connection's error
   */
  async next(): Promise<Uint8Array | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array | undefined>();
    this.#waiting = { resolve, reject };
    this.#give();
    return await promise;
  }

  #finish(error: unknown): void {
    this.#end ??= { error };
    this.#give();
  }

  #give(): void {
    const waiting = this.#waiting;
    const message = waiting === undefined ? undefined : this.#queue.shift();
    // What belongs to an incomplete message must come, however large it is.
    if (this.#queue.length === 0) this.#grant();
    if (waiting === undefined || (message === undefined && this.#end === undefined)) return;
    this.#waiting = undefined;
    if (message !== undefined) waiting.resolve(message);
    else if (this.#end?.error === undefined) waiting.resolve(undefined);
    else waiting.reject(this.#end.error);
  }

  #grant(): void {
    const bytes = this.#ungranted;
    this.#ungranted = 0;
    if (bytes > 0) this.stream?.consumed(bytes);
  }
}

/** https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md */
function codeOfHttp(status: number): RpcError["code"] {
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
