import { errorName } from "./frames.ts";

/** The server ended a request's stream, or does not take the request. */
export class StreamResetError extends Error {
  /** RFC 9113 §7. */
  readonly code: number;

  constructor(code: number, message = `the server reset the request: ${errorName(code)}`) {
    super(message);
    this.name = "StreamResetError";
    this.code = code;
  }
}

/** The connection ended before the response; `message` is a clause. */
export class ConnectionLostError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ConnectionLostError";
  }
}
