import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { ImageService, RuntimeService } from "./gen/runtime/v1/api_pb.js";

/** Options of one CRI call. Without `timeoutMs` the call waits until `signal` aborts. */
export interface CriCallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

type CriMethod<M> =
  M extends DescMethodUnary<infer I extends DescMessage, infer O extends DescMessage>
    ? (request: MessageInitShape<I>, options?: CriCallOptions) => Promise<MessageShape<O>>
    : M extends DescMethodServerStreaming<infer I extends DescMessage, infer O extends DescMessage>
      ? (request: MessageInitShape<I>, options?: CriCallOptions) => AsyncIterable<MessageShape<O>>
      : never;

type CriService<S extends DescService> = { readonly [K in keyof S["method"]]: CriMethod<S["method"][K]> };

/** All of CRI v1's RuntimeService as typed calls. Every call rejects with {@link CriError} and nothing else. */
export type CriRuntimeService = CriService<typeof RuntimeService>;
/** All of CRI v1's ImageService as typed calls. Every call rejects with {@link CriError} and nothing else. */
export type CriImageService = CriService<typeof ImageService>;

/** The container runtime, above gRPC: what the simulator replaces. */
export interface Cri {
  readonly runtime: CriRuntimeService;
  readonly images: CriImageService;
}

/** gRPC status codes by name (https://grpc.io/docs/guides/status-codes/). */
export type CriErrorCode =
  | "Canceled"
  | "Unknown"
  | "InvalidArgument"
  | "DeadlineExceeded"
  | "NotFound"
  | "AlreadyExists"
  | "PermissionDenied"
  | "ResourceExhausted"
  | "FailedPrecondition"
  | "Aborted"
  | "OutOfRange"
  | "Unimplemented"
  | "Internal"
  | "Unavailable"
  | "DataLoss"
  | "Unauthenticated";

/**
 * A CRI call that failed. After `Canceled`, `DeadlineExceeded` and `Unavailable` the outcome is unknown: the runtime
 * may have done the work ({@link outcomeUnknown}), so the caller observes again before it decides.
 */
export class CriError extends Error {
  readonly code: CriErrorCode;
  readonly method: string;
  constructor(code: CriErrorCode, method: string, message: string, options?: ErrorOptions) {
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
export function isCriError(error: unknown, ...codes: readonly CriErrorCode[]): error is CriError {
  return error instanceof CriError && (codes.length === 0 || codes.includes(error.code));
}
