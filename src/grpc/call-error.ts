import { errorMessage } from "../base/errors.ts";
import { RpcError } from "../ports/rpc.ts";
import { ConnectionLostError, StreamResetError } from "../http2/errors.ts";
import type { CallScope } from "./call-scope.ts";

/** The peer, for messages about an unreachable one, and whether podwright itself closed the connection. */
export interface Peer {
  /** For example `runtime`. */
  readonly name: string;
  readonly endpoint: string;
  readonly closed: boolean;
}

/** Converts a call's failure into the caller's error. A response of the peer keeps its code and message. */
export function callError(error: unknown, scope: CallScope, peer: Peer): RpcError {
  if (error instanceof RpcError && error.isStatus) return error;
  if (scope.end === "canceled" || scope.end === "left") {
    const reason = scope.reason === undefined ? "" : `: ${errorMessage(scope.reason)}`;
    return new RpcError("Canceled", `canceled by podwright${reason}`, { cause: scope.reason });
  }
  if (scope.end === "deadline") return deadlineExceeded(scope);
  if (peer.closed) return new RpcError("Canceled", "the client is closed", { cause: error });
  return clientSideError(error, scope, peer);
}

function deadlineExceeded(scope: CallScope): RpcError {
  return new RpcError("DeadlineExceeded", `no response within ${(scope.timeoutMs ?? 0) / 1000} s`);
}

/**
 * Errors raised on this side: by the gRPC client, by HTTP/2, by the socket. Their codes are not statuses of the
 * peer, so only what callers act on is kept: an oversized message, a lost connection, otherwise a protocol error.
 */
function clientSideError(error: unknown, scope: CallScope, peer: Peer): RpcError {
  const words = errorMessage(error);
  const cause = { cause: error };
  if (!(error instanceof RpcError)) return connectionError(error, peer);
  switch (error.code) {
    case "ResourceExhausted":
      return new RpcError(error.code, words, cause);
    case "Canceled":
      // A stream that was reset without a status: by the peer's own timer, or because the connection died.
      if (scope.timeIsUp) return deadlineExceeded(scope);
      return new RpcError("Unavailable", `the connection to ${peer.endpoint} was lost`, cause);
    case "Unavailable":
      return new RpcError(error.code, `cannot reach the ${peer.name} at ${peer.endpoint}: ${words}`, cause);
    default:
      return new RpcError("Internal", words, cause);
  }
}

/** The connection's end, or that of the call's stream; anything else is a defect. */
function connectionError(error: unknown, { name, endpoint }: Peer): RpcError {
  const words = errorMessage(error);
  const isReset = error instanceof StreamResetError;
  if (!isReset && !(error instanceof ConnectionLostError)) return new RpcError("Internal", words, { cause: error });
  const what = isReset ? "got no response from" : "cannot reach";
  return new RpcError("Unavailable", `${what} the ${name} at ${endpoint}: ${words}`, { cause: error });
}
