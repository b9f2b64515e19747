import type { RpcError } from "../ports/rpc.ts";

/** Codes after which the driver may still be at work, as upstream has them (isFinalError). */
const uncertainCodes: ReadonlySet<string> = new Set([
  "Canceled",
  "DeadlineExceeded",
  "Unavailable",
  "ResourceExhausted",
  "Aborted",
]);

/** A call of a CSI driver that failed; its message is that of gRPC for Go, as upstream shows it. */
export class CsiCallError extends Error {
  readonly code: string;
  /**
   * Whether the operation did not start, or has failed for sure. After any other error the driver may have done it, or may be
   * doing it still.
   */
  readonly isFinal: boolean;

  /** For the journal. */
  get outcomeUnknown(): boolean {
    return !this.isFinal;
  }

  constructor(error: RpcError) {
    const { code, isStatus } = error;
    const words = code === "DeadlineExceeded" && !isStatus ? "context deadline exceeded" : error.message;
    super(`rpc error: code = ${code} desc = ${words}`, { cause: error });
    this.name = "CsiCallError";
    this.code = code;
    // What this side made of a broken answer says nothing about what the driver did.
    this.isFinal = isStatus && !uncertainCodes.has(code);
  }
}

/** Whether nothing of the operation that ended with this error is left, or under way. */
export function isFinal(error: unknown): boolean {
  return !(error instanceof CsiCallError) || error.isFinal;
}
