import { errorMessage } from "../base/errors.ts";
import { CriError } from "../ports/cri.ts";
import type { CallScope } from "./call-scope.ts";
import { GrpcError } from "./grpc-status.ts";

/** Where the runtime was looked for, to be named when it can't be reached, and whether podwright hung up itself. */
export interface Peer {
  readonly endpoint: string;
  readonly closed: boolean;
}

/**
 * Turns whatever a call failed with into a {@link CriError}. What the runtime answered keeps its code and its words.
 */
export function criErrorFrom(error: unknown, method: string, scope: CallScope, peer: Peer): CriError {
  if (error instanceof GrpcError && error.isStatus) {
    return new CriError(error.code, method, error.message || error.code, { cause: error });
  }
  if (scope.end === "canceled" || scope.end === "left") {
    const reason = scope.reason === undefined ? "" : `: ${errorMessage(scope.reason)}`;
    return new CriError("Canceled", method, `canceled by podwright${reason}`, { cause: scope.reason });
  }
  if (scope.end === "deadline") return deadlineExceeded(method, scope);
  if (peer.closed) return new CriError("Canceled", method, "the CRI client was closed", { cause: error });
  return clientSideError(error, method, scope, peer.endpoint);
}

function deadlineExceeded(method: string, scope: CallScope): CriError {
  return new CriError("DeadlineExceeded", method, `no answer within ${(scope.timeoutMs ?? 0) / 1000} s`);
}

/**
 * Errors made on this side: of what came, by Node's HTTP/2, by the socket. Their codes are no status of the runtime, so
 * only what callers act on is kept: too large a message, a lost connection, and otherwise a broken conversation.
 */
function clientSideError(error: unknown, method: string, scope: CallScope, endpoint: string): CriError {
  const words = errorMessage(error);
  const cause = { cause: error };
  if (!(error instanceof GrpcError)) return connectionError(error, method, endpoint);
  switch (error.code) {
    case "ResourceExhausted":
      return new CriError(error.code, method, words, cause);
    case "Canceled":
      // A stream that was reset without a status: the runtime's own timer, or the connection died under it.
      if (scope.timeIsUp) return deadlineExceeded(method, scope);
      return new CriError("Unavailable", method, `the connection to ${endpoint} was lost`, cause);
    case "Unavailable":
      return new CriError(error.code, method, `cannot reach the runtime at ${endpoint}: ${words}`, cause);
    default:
      return new CriError("Internal", method, words, cause);
  }
}

/** An error of Node's socket or HTTP/2, or else a defect. */
function connectionError(error: unknown, method: string, endpoint: string): CriError {
  const nodeCode = nodeErrorCode(error);
  const words = errorMessage(error);
  if (nodeCode === undefined) return new CriError("Internal", method, words, { cause: error });
  const what = nodeCode.startsWith("ERR_HTTP2_STREAM") ? "got no answer from" : "cannot reach";
  return new CriError("Unavailable", method, `${what} the runtime at ${endpoint}: ${words}`, { cause: error });
}

/** The code (`ENOENT`, `ERR_HTTP2_…`) of the error of Node's socket or HTTP/2 in the chain of causes. */
function nodeErrorCode(error: unknown): string | undefined {
  for (let link = error; link instanceof Error && link.cause !== link; link = link.cause) {
    if ("code" in link && typeof link.code === "string") return link.code;
  }
  return undefined;
}
