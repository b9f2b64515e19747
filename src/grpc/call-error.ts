import { errorMessage } from "../base/errors.ts";
import { RpcError } from "../ports/rpc.ts";
import type { CallScope } from "./call-scope.ts";

/** Who was called, to be named when it can't be reached, and whether podwright hung up itself. */
export interface Peer {
  /** What it is, as `runtime`. */
  readonly name: string;
  readonly endpoint: string;
  readonly closed: boolean;
}

/** Turns whatever a call failed with into what its caller is told. What the peer answered keeps its code and its words. */
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
 * Errors made on this side: of what came, by Node's HTTP/2, by the socket. Their codes are no status of the peer, so
 * only what callers act on is kept: too large a message, a lost connection, and otherwise a broken conversation.
 */
function clientSideError(error: unknown, scope: CallScope, peer: Peer): RpcError {
  const words = errorMessage(error);
  const cause = { cause: error };
  if (!(error instanceof RpcError)) return connectionError(error, peer);
  switch (error.code) {
    case "ResourceExhausted":
      return new RpcError(error.code, words, cause);
    case "Canceled":
      // A stream that was reset without a status: the peer's own timer, or the connection died under it.
      if (scope.timeIsUp) return deadlineExceeded(scope);
      return new RpcError("Unavailable", `the connection to ${peer.endpoint} was lost`, cause);
    case "Unavailable":
      return new RpcError(error.code, `cannot reach the ${peer.name} at ${peer.endpoint}: ${words}`, cause);
    default:
      return new RpcError("Internal", words, cause);
  }
}

/** An error of Node's socket or HTTP/2, or else a defect. */
function connectionError(error: unknown, { name, endpoint }: Peer): RpcError {
  const nodeCode = nodeErrorCode(error);
  const words = errorMessage(error);
  if (nodeCode === undefined) return new RpcError("Internal", words, { cause: error });
  const what = nodeCode.startsWith("ERR_HTTP2_STREAM") ? "got no response from" : "cannot reach";
  return new RpcError("Unavailable", `${what} the ${name} at ${endpoint}: ${words}`, { cause: error });
}

/** The code (`ENOENT`, `ERR_HTTP2_…`) of the error of Node's socket or HTTP/2 in the chain of causes. */
function nodeErrorCode(error: unknown): string | undefined {
  for (let link = error; link instanceof Error && link.cause !== link; link = link.cause) {
    if ("code" in link && typeof link.code === "string") return link.code;
  }
  return undefined;
}
