import { type RpcCode, RpcError } from "../ports/rpc.ts";

/** Codes by their numbers on the wire (https://grpc.io/docs/guides/status-codes/); 0 is OK. */
const codes: readonly (RpcCode | undefined)[] = [
  undefined,
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
];

/**
 * The status in these headers or trailers; undefined for OK.
 * @returns an error of this side when there is no status or it cannot be parsed
 */
export function statusError(fields: ReadonlyMap<string, string>): RpcError | undefined {
  const status = fields.get("grpc-status");
  if (status === undefined) return new RpcError("Internal", "the response has no grpc-status");
  if (status === "0") return undefined;
  const code = /^\d{1,2}$/.test(status) ? codes[Number(status)] : undefined;
  if (code === undefined) return new RpcError("Internal", `the response has grpc-status ${JSON.stringify(status)}`);
  const words = fields.get("grpc-message") ?? "";
  return new RpcError(code, words === "" ? code : decoded(words), { isStatus: true });
}

/** `grpc-message` is percent-encoded UTF-8; an undecodable one is returned unchanged. */
function decoded(words: string): string {
  try {
    return decodeURIComponent(words);
  } catch {
    return words;
  }
}
