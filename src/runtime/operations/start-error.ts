import { errorMessage } from "../../base/errors.ts";
import { isCriError } from "../../ports/cri.ts";
import { withRemedy } from "./create-remedy.ts";
import type { StartFailure } from "./pod-operation.ts";

/** A container that could not be started: `reason` is its waiting reason. */
export class StartError extends Error {
  readonly reason: string;
  /** Monotonic ms before which a retry is pointless; undefined: the worker's own back-off decides. */
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

/** The user-visible part of a start's error. */
export function failureOf(error: unknown): StartFailure {
  if (error instanceof StartError) {
    return { reason: error.reason, message: error.message, retryAtMs: error.retryAtMs, error };
  }
  return { reason: "RunContainerError", message: errorMessage(error), retryAtMs: undefined, error };
}

/** Awaits a step of a start: runtime errors become StartErrors with that reason. */
export async function startStep<T>(reason: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isCriError(error)) throw error;
    throw new StartError(reason, withRemedy(error.message), { cause: error });
  }
}
