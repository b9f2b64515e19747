import type { RpcError } from "../ports/rpc.ts";

/** Codes after which the driver may still be working, as upstream's isFinalError. */
const uncertainCodes: ReadonlySet<string> = new Set([
  "Canceled",
  "DeadlineExceeded",
  "Unavailable",
  "ResourceExhausted",
  "Aborted",
]);

/** A failed call of a CSI driver. Its message has the form of Go's gRPC, as upstream shows it. */
export class CsiCallError extends Error {
  readonly code: string;
  /**
   * Whether the operation did not start or failed definitely. After any other error the driver may have completed it,
   * or may still be working on it.
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
    // An error that this client made of an invalid response shows nothing about what the driver did.
    this.isFinal = isStatus && !uncertainCodes.has(code);
  }
}

/** Whether an operation that failed with this error left nothing behind and nothing in progress. */
export function isFinal(error: unknown): boolean {
  return !(error instanceof CsiCallError) || error.isFinal;
}
