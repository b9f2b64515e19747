import { errorMessage } from "../../base/errors.ts";
import type { Cause, PodRef, Recorder } from "../../journal/entry.ts";
import type { NameOf } from "../../journal/vocabulary.ts";

/** The journal names of failed steps of a pod. */
export interface FailingStep {
  readonly what: NameOf<"observation">;
  readonly pod: PodRef;
  readonly cause: Cause;
}

/**
 * Awaits a step that is not an action of the runtime: its failure is recorded as an observation.
 * @param signal undefined: the step cannot be canceled
 */
export async function tellFailure<T>(
  journal: Recorder,
  step: FailingStep,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    journal.record({ kind: "observation", message: errorMessage(error), ...step });
    throw error;
  }
}
