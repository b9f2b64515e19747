import { errorMessage } from "../../base/errors.ts";
import type { Cause, PodRef, Recorder } from "../../journal/entry.ts";
import type { NameOf } from "../../journal/vocabulary.ts";

/** What a step of a pod is called in the journal when it fails. */
export interface FailingStep {
  readonly what: NameOf<"observation">;
  readonly pod: PodRef;
  readonly cause: Cause;
}

/**
 * Awaits a step that is no action of the runtime's: nothing else tells of its failure, so an observation does.
 * @param signal undefined: the step can't be called off
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
