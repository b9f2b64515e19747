import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cause, EntryDetails, Recorder } from "./entry.ts";
import type { NameOf } from "./vocabulary.ts";

/** An action before it starts: its journal entry without the kind. */
export type ActionInput = Omit<EntryDetails, "of" | "result" | "durationMs"> & {
  readonly what: NameOf<"action">;
  readonly cause: Cause;
  /** Added to the outcome's data, whatever the outcome. */
  readonly outcomeData?: NonNullable<EntryDetails["data"]>;
};

/**
 * Runs `work` as a journal action: records the action with its cause, then its outcome with the duration. A call that
 * was canceled or timed out is recorded as unknown. Rejects with the error of `work`.
 * @param details extracts the outcome's data from the value
 */
export async function perform<T>(
  journal: Recorder,
  clock: Clock,
  { outcomeData, ...action }: ActionInput,
  work: () => Promise<T>,
  details: (value: T) => NonNullable<EntryDetails["data"]> = () => ({}),
): Promise<T> {
  const of = journal.record({ ...action, kind: "action" });
  const began = clock.monotonic();
  const outcome = (
    result: "done" | "failed" | "unknown",
    message: string,
    found: NonNullable<EntryDetails["data"]> = {},
  ): void => {
    const data = { ...outcomeData, ...found };
    journal.record({
      kind: "outcome",
      what: action.what,
      message,
      ...(action.pod === undefined ? {} : { pod: action.pod }),
      ...(action.container === undefined ? {} : { container: action.container }),
      of,
      result,
      durationMs: clock.monotonic() - began,
      ...(Object.keys(data).length > 0 && { data }),
    });
  };
  try {
    const value = await work();
    outcome("done", `${action.message}: done`, details(value));
    return value;
  } catch (error) {
    outcome(isOutcomeUnknown(error) ? "unknown" : "failed", errorMessage(error));
    throw error;
  }
}

/** Errors of calls say it themselves. */
function isOutcomeUnknown(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return "outcomeUnknown" in error ? error.outcomeUnknown === true : error.name === "AbortError";
}
