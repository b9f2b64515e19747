import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";

/** Options of one call. Without `timeoutMs` the call waits until `signal` aborts. */
export interface RpcCallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

type RpcMethod<M> =
  M extends DescMethodUnary<infer I extends DescMessage, infer O extends DescMessage>
    ? (request: MessageInitShape<I>, options?: RpcCallOptions) => Promise<MessageShape<O>>
    : M extends DescMethodServerStreaming<infer I extends DescMessage, infer O extends DescMessage>
      ? (request: MessageInitShape<I>, options?: RpcCallOptions) => AsyncIterable<MessageShape<O>>
      : never;

/** All unary and server-streaming methods of a service as typed calls, by their names in camel case. */
export type RpcService<S extends DescService> = { readonly [K in keyof S["method"]]: RpcMethod<S["method"][K]> };

/** gRPC status codes by name (https://grpc.io/docs/guides/status-codes/). */
export type RpcCode =
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

interface Origin {
  readonly isStatus?: boolean;
}

/** What a call ends with in place of an answer; also thrown by what answers calls. */
export class RpcError extends Error {
  readonly code: RpcCode;
  /** Whether the server sent it as its status, or this side made it of what came or did not come from there. */
  readonly isStatus: boolean;

  constructor(code: RpcCode, message: string, { isStatus = false, ...options }: ErrorOptions & Origin = {}) {
    super(message, options);
    this.name = "RpcError";
    this.code = code;
    this.isStatus = isStatus;
  }
}
