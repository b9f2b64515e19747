import { errorMessage } from "../../base/errors.ts";
import { isCriError } from "../../ports/cri.ts";
import { withRemedy } from "./create-remedy.ts";
import type { StartFailure } from "./pod-operation.ts";

/** A container that could not be started: `reason` is the waiting reason that users know. */
export class StartError extends Error {
  readonly reason: string;
  /** Monotonic ms before which another try is pointless; undefined: the worker's own back-off decides. */
  readonly retryAtMs: number | undefined;
  constructor(
    reason: string,
    message: string,
    options: ErrorOptions & { readonly retryAtMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.name = "StartError";
    this.reason = reason;
    this.retryAtMs = options.retryAtMs;
  }
}

/** What a start's error says to users. */
export function failureOf(error: unknown): StartFailure {
  if (error instanceof StartError) {
    return { reason: error.reason, message: error.message, retryAtMs: error.retryAtMs, error };
  }
  return { reason: "RunContainerError", message: errorMessage(error), retryAtMs: undefined, error };
}

/** Awaits a part of a start: the runtime's errors become StartErrors of that reason. */
export async function startStep<T>(reason: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isCriError(error)) throw error;
    throw new StartError(reason, withRemedy(error.message), { cause: error });
  }
}
