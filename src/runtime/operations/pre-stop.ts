import { errorMessage } from "../../base/errors.ts";
import type { Cause } from "../../journal/entry.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import { type HookContainer, type LifecycleHandler, runHook } from "./hooks.ts";

/**
 * Runs a preStop hook. A hook that fails delays nothing and fails nothing: it is written to the journal.
 * @throws the signal's reason
 */
export async function runPreStop(
  deps: Pick<RuntimeDependencies, "clock" | "cri" | "journal" | "networkProbes">,
  container: HookContainer,
  handler: LifecycleHandler,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  try {
    await runHook(deps, "preStop", container, handler, cause, signal);
  } catch (error) {
    signal.throwIfAborted();
    const problem = errorMessage(error);
    deps.journal.record({
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
