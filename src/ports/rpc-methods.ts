import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from "@bufbuild/protobuf";

/** Narrows a method's descriptor; `DescMethod` is an interface, so that comparing `methodKind` alone does not. */
export function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

/** CRI has unary and server-streaming methods only. */
export function isServerStreaming(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === "server_streaming";
}
