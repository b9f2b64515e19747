import type { FieldProblem } from "./field-problem.ts";

/** A request to the engine's API, as a handler sees it. */
export interface ApiRequest {
  /** Upper case, e.g. `GET`. */
  readonly method: string;
  /** Path without the query, percent-encoding kept, e.g. `/pods/default/hello`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /**
   * The body as UTF-8 text, read on the first call. Rejects with a `PodwrightError` when it is longer than the server
   * accepts, and with the signal's reason when the client goes away first.
   */
  body(): Promise<string>;
  /** Aborts when the client went away or the server closes. */
  readonly signal: AbortSignal;
}

/** What a handler answers: a whole text, or a stream that is read only as fast as the client takes it. */
export interface ApiResponse {
  readonly status: number;
  /** e.g. `application/json`, `application/x-ndjson` for streams of one JSON value a line. */
  readonly contentType: string;
  /** Besides Content-Type and Content-Length. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | AsyncIterable<string | Uint8Array>;
}

/**
 * Answers one request. A thrown `PodwrightError` becomes 400 (bad input), 413 (the body is too long), 422 (failed) or 503
 * (environment) and anything else 500, each with an {@link ApiErrorBody}, or as plain text where others than podwright's
 * own commands ask.
 */
export type ApiHandler = (request: ApiRequest) => Promise<ApiResponse>;

/** JSON body of every answer of the engine's own API with a status of 400 and above. */
export interface ApiErrorBody {
  readonly error: string;
  readonly remedy?: string;
  /** Exit code for the requesting command (`ExitCode`). */
  readonly exitCode?: number;
  /** What is wrong with the objects of the request. */
  readonly problems?: readonly FieldProblem[];
}

/** A server that accepts requests until it is closed. */
export interface ApiServer extends AsyncDisposable {
  /** Where it listens: the socket's path. */
  readonly address: string;
  /** Stops accepting, aborts running requests, gives them a moment to end, and removes the socket. */
  close(): Promise<void>;
}
