import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import { FileError } from "../ports/files.ts";
import type { Health } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import type { EngineSession } from "./engine-session.ts";
import { stoppingPods } from "./kept-claims.ts";
import type { MachineContext } from "./machine-context.ts";
import { ownCommand } from "./own-command.ts";

/** The pods whose stop an engine has yet to complete. */
export async function podsBeingStopped(context: MachineContext): Promise<readonly PodRef[]> {
  return await stoppingPods(context).catch((error: unknown) => {
    // Why the state cannot be read is said by the start of the engine, with what to do.
    if (error instanceof FileError) return [];
    throw error;
  });
}

/** The pods that the engine is to run. @param stopping those that it lists, too, until they are gone */
export async function storedPods(
  session: Pick<EngineSession, "call">,
  stopping: readonly PodRef[],
): Promise<readonly PodRef[]> {
  const views = await session.call((engine) => engine.pods());
  return views
    .filter((view) => view.source === "run" && !stopping.some(({ uid }) => uid === view.uid))
    .map(({ namespace, name, uid }) => ({ namespace, name, uid }));
}

export function stopText(stopping: readonly PodRef[]): string {
  return `completing the stop of ${stopping.map(podLabel).join(", ")}`;
}

export function nothingStored({ layout: { stateDirectory } }: MachineContext, { checks }: Health): PodwrightError {
  const unreadable = checks.find(({ name }) => name === "manifests");
  if (unreadable !== undefined) {
    const { detail, remedy = `see '${ownCommand(stateDirectory, "doctor")}'` } = unreadable;
    return new PodwrightError(ExitCode.failed, `no stored manifest can be read: ${detail}`, { remedy });
  }
  return new PodwrightError(ExitCode.badInput, `no pods are stored in ${stateDirectory}`, {
    remedy: `specify a manifest: '${ownCommand(stateDirectory, "run")} FILE', e.g. examples/hello.yaml`,
  });
}
