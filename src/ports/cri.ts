import type { ImageService, RuntimeService } from "./gen/runtime/v1/api_pb.js";
import type { RpcCode, RpcService } from "./rpc.ts";

/** All of CRI v1's RuntimeService as typed calls. Every call rejects with {@link CriError} and nothing else. */
export type CriRuntimeService = RpcService<typeof RuntimeService>;
/** All of CRI v1's ImageService as typed calls. Every call rejects with {@link CriError} and nothing else. */
export type CriImageService = RpcService<typeof ImageService>;

/** The container runtime, above gRPC: what the simulator replaces. */
export interface Cri {
  readonly runtime: CriRuntimeService;
  readonly images: CriImageService;
}

/**
 * A CRI call that failed. After `Canceled`, `DeadlineExceeded` and `Unavailable` the outcome is unknown: the runtime
 * may have done the work ({@link outcomeUnknown}), so the caller observes again before it decides.
 */
export class CriError extends Error {
  readonly code: RpcCode;
  readonly method: string;
  constructor(code: RpcCode, method: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CriError";
    this.code = code;
    this.method = method;
  }

  /** True when the runtime may or may not have carried the call out. */
  get outcomeUnknown(): boolean {
    return this.code === "Canceled" || this.code === "DeadlineExceeded" || this.code === "Unavailable";
  }
}

/** True for a {@link CriError} with one of the codes. */
export function isCriError(error: unknown, ...codes: readonly RpcCode[]): error is CriError {
  return error instanceof CriError && (codes.length === 0 || codes.includes(error.code));
}
