import { errorMessage } from "../../base/errors.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { Hook, HookRunner } from "./hooks.ts";

/**
 * Runs a preStop hook. A failed hook delays and fails nothing: it is recorded in the journal.
 * @throws the signal's reason
 */
export async function runPreStop(
  hooks: HookRunner,
  journal: Recorder,
  hook: Omit<Hook, "kind">,
  signal: AbortSignal,
): Promise<void> {
  const { container, cause } = hook;
  try {
    await hooks.run({ ...hook, kind: "preStop" }, signal);
  } catch (error) {
    signal.throwIfAborted();
    const problem = errorMessage(error);
    journal.record({
      kind: "observation",
      what: "FailedPreStopHook",
      message: `the preStop hook of container ${container.name} failed: ${problem}`,
      pod: container.pod,
      container: container.name,
      cause,
      data: { eventMessage: `PreStopHook failed: ${problem}` },
    });
  }
}
