import type { DescService } from "@bufbuild/protobuf";
import { CriError } from "../ports/cri.ts";

/** Every method of the service, failing as unimplemented. */
export function unimplemented<T>(service: DescService): T {
  const methods = service.methods.map((method) => {
    const refuse = (): unknown =>
      method.methodKind === "unary" ? Promise.reject(unknownMethod(method.localName)) : refuseStream(method.localName);
    return [method.localName, refuse] as const;
  });
  return Object.fromEntries(methods) as T;
}

function unknownMethod(method: string): CriError {
  return new CriError("Unimplemented", method, `unknown method ${method}`);
}

// oxlint-disable-next-line require-yield -- it refuses before it could give anything
export async function* refuseStream(method: string): AsyncGenerator<never> {
  throw unknownMethod(method);
}

/** A stream that ends at once without an error. */
export async function* emptyStream(): AsyncGenerator<never> {}
