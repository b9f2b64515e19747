import { request as httpRequest, type IncomingMessage } from "node:http";
import { eitherSignal } from "../../base/abort.ts";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import { answeredError } from "./api-errors.ts";
import { errnoOf } from "../file-error.ts";
import { readBody } from "./http-body.ts";

/**
 * No server at the socket (`ENOENT`, `ECONNREFUSED`), no permission (`EACCES`), an incomplete response (`ECONNRESET` …)
 * or no data for too long (`ETIMEDOUT`): `code` is the errno name.
 */
export class SocketError extends Error {
  readonly code: string;
  readonly socketPath: string;
  constructor(code: string, socketPath: string, message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.name = "SocketError";
    this.code = code;
    this.socketPath = socketPath;
  }
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /**
   * Fails the call when no byte arrives for this long, or none is read because its lines are not consumed. Default:
   * unlimited.
   */
  readonly silenceMs?: number;
}

export interface ClientOptions extends CallOptions {
  /** JSON text. */
  readonly body?: string;
}

/** The client side of `serveUnix`. Every call opens its own connection. */
export interface UnixTransport {
  /**
   * Sends a request and reads the whole response, whatever its status. Rejects with a {@link SocketError}, or with the
   * signal's reason.
   */
  request(
    method: string,
    path: string,
    options?: ClientOptions,
  ): Promise<{ readonly status: number; readonly contentType: string; readonly body: string }>;
  /**
   * Sends a GET and yields the response line by line as it arrives (without newlines). Leaving the loop ends the
   * connection. Throws like `request`, and for a status of 400 and above the `PodwrightError` in the response.
   */
  lines(path: string, options: CallOptions): AsyncIterable<string>;
}

/** Maximum response in bytes, and maximum line of a stream in characters. */
const longestAnswer = 64 * 1024 * 1024;

/** A client of the server at a Unix socket, whether or not there is one at the moment. */
export function unixTransport(socketPath: string): UnixTransport {
  return {
    async request(method, path, options = {}) {
      using patience = patienceOf(socketPath, options);
      try {
        const response = await open(socketPath, method, path, options.body, patience);
        const contentType = response.headers["content-type"] ?? "";
        return { status: response.statusCode ?? 0, contentType, body: await readAnswer(response) };
      } catch (error) {
        throw transportError(error, socketPath, patience.signal);
      }
    },

    async *lines(path, options) {
      using patience = patienceOf(socketPath, options);
      let response: IncomingMessage | undefined;
      try {
        response = await open(socketPath, "GET", path, undefined, patience);
        const status = response.statusCode ?? 0;
        if (status >= 400) throw answeredError(status, await readAnswer(response));
        yield* linesOf(response);
      } catch (error) {
        throw transportError(error, socketPath, patience.signal);
      } finally {
        response?.destroy();
      }
    },
  };
}

/** The limits of a call: its caller stops reading, or the server is silent for too long. */
interface Patience extends Disposable {
  readonly signal: AbortSignal;
  readonly silenceMs: number | undefined;
  readonly onSilence: () => void;
}

function patienceOf(socketPath: string, { signal, silenceMs }: CallOptions): Patience {
  const silence = new AbortController();
  const either = signal === undefined ? undefined : eitherSignal(signal, silence.signal);
  return {
    signal: either?.signal ?? silence.signal,
    silenceMs,
    onSilence: () => {
      const message = `${socketPath}: no data received for ${silenceMs} ms`;
      silence.abort(new SocketError("ETIMEDOUT", socketPath, message));
    },
    [Symbol.dispose]: () => either?.[Symbol.dispose](),
  };
}

/** Sends the request and waits for the response headers. */
async function open(
  socketPath: string,
  method: string,
  path: string,
  body = "",
  { signal, silenceMs, onSilence }: Patience,
): Promise<IncomingMessage> {
  signal.throwIfAborted();
  const headers = { Host: "podwright", "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
  const timeout = silenceMs === undefined ? {} : { timeout: silenceMs };
  const outgoing = httpRequest({ socketPath, method, path, headers, agent: false, signal, ...timeout });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once("response", resolve);
  outgoing.once("timeout", onSilence);
  // Never removed: an error may occur until the connection has ended.
  outgoing.on("error", reject);
  outgoing.end(body);
  return await promise;
}

async function readAnswer(response: IncomingMessage): Promise<string> {
  return (await readBody(response, longestAnswer, tooLong)).toString("utf8");
}

async function* linesOf(response: IncomingMessage): AsyncGenerator<string, void, undefined> {
  response.setEncoding("utf8");
  let rest = "";
  for await (const chunk of response) {
    const lines = String(chunk).split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    if (rest.length > longestAnswer) throw tooLong();
    yield* lines;
  }
  if (rest !== "") yield rest;
}

function tooLong(): PodwrightError {
  return new PodwrightError(ExitCode.failed, `podwright's response is longer than ${longestAnswer} bytes`);
}

function transportError(error: unknown, socketPath: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const code = errnoOf(error);
  if (error instanceof PodwrightError || !(error instanceof Error) || code === undefined) return error;
  return new SocketError(code, socketPath, `${socketPath}: ${error.message}`, { cause: error });
}
