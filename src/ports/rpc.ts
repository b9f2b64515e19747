/** What a gRPC call is answered with when it fails, by the names of the gRPC status codes. */
export type RpcCode = "unknown" | "not_found" | "resource_exhausted";

/** Thrown by what answers gRPC calls. */
export class RpcError extends Error {
  readonly code: RpcCode;

  constructor(code: RpcCode, message: string) {
    super(message);
    this.name = "RpcError";
    this.code = code;
  }
}
