import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { MachineContext } from "./machine-context.ts";
import { EngineSession } from "./engine-session.ts";
import { Interrupts } from "./interrupts.ts";
import type { PodView } from "../server/local-api.ts";
import { printError, printWarning } from "./error-output.ts";
import { ownCommand } from "./own-command.ts";
import { servedLines, waitUntilGone } from "./stopping.ts";

export interface StopOptions {
  /** Seconds. */
  readonly grace?: number;
  readonly json?: true;
}

/**
 * `podwright stop POD…`: requests the stop of each pod, then waits until all are gone. Failures are reported, and the other
 * pods are stopped.
 */
export async function stopCommand(
  context: MachineContext,
  selectors: readonly string[],
  options: StopOptions,
): Promise<ExitCode> {
  const { terminal, engine, layout } = context;
  const own = (...command: readonly [string, ...string[]]): string => ownCommand(layout.stateDirectory, ...command);
  using interrupts = new Interrupts(process, terminal.closed);
  const views: PodView[] = [];
  let exitCode: ExitCode = ExitCode.done;
  for (const selector of new Set(selectors)) {
    try {
      views.push(await engine.stop(selector, options.grace));
    } catch (error) {
      if (!(error instanceof PodwrightError)) throw error;
      printError(terminal, error);
      exitCode = error.exitCode;
    }
  }
  for (const line of servedLines(views)) printWarning(terminal, new Error(line));
  const stopped = views.map(({ namespace, name, uid }) => ({ namespace, name, uid }));
  const session = new EngineSession(context, {}, interrupts.first);
  try {
    await waitUntilGone(context, session, stopped, { quiet: options.json === true, signal: interrupts.first });
  } catch (error) {
    if (!interrupts.first.aborted) throw error;
    const more =
      options.grace === 0
        ? `'${own("why", stopped[0]?.name ?? "")}' what a pod waits for`
        : `'${own("stop", "--grace", "0", ...selectors)}' kills the containers at once`;
    throw new PodwrightError(ExitCode.failed, "stopped waiting; the stop continues", {
      remedy: `'${own("ps")}' shows the progress, ${more}`,
    });
  }
  if (options.json === true) terminal.print(JSON.stringify({ stopped }, undefined, 2));
  return exitCode;
}
