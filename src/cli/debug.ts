import { ExitCode, PodwrightError } from "../base/errors.ts";
import { followLog } from "../logs/reader.ts";
import type { ContainerView, DebugContainer } from "../server/local-api.ts";
import type { MachineContext } from "./machine-context.ts";
import { Interrupts } from "./interrupts.ts";
import { gonePods, listPods } from "./listing.ts";
import { LogOutput } from "./logs.ts";
import { podLabel } from "../server/pod-selector.ts";
import { ownCommand } from "./own-command.ts";

export interface DebugOptions {
  readonly image?: string;
  /** Name of the container whose process namespace it joins. */
  readonly target?: string;
}

const pollMs = 200;
/** Unless the engine hangs, the pod's status has the new container within this time. */
const takenUpWithinMs = 30_000;
/** Waiting reasons of a normal start; any other is a problem. */
const onItsWay: ReadonlySet<string> = new Set(["", "ContainerCreating", "PodInitializing"]);

/**
 * `podwright debug POD -- CMD…`: runs a command in an ephemeral container of a running pod, prints its output, and
 * fails if the command fails.
 */
export async function debugCommand(
  context: MachineContext,
  selector: string,
  command: readonly string[],
  options: DebugOptions,
): Promise<ExitCode> {
  const { terminal, engine, clock } = context;
  if (command.length === 0 && options.image === undefined) {
    throw new PodwrightError(ExitCode.badInput, "no command given", {
      remedy: `add a command after --, e.g. '${ownCommand(context.layout.stateDirectory, "debug", selector, "--", "ps")}', or an --image with one`,
    });
  }
  using interrupts = new Interrupts(process, terminal.closed);
  const signal = interrupts.first;
  const added = await engine.debug(selector, {
    ...(options.image !== undefined && { image: options.image }),
    ...(options.target !== undefined && { target: options.target }),
    command,
  });
  terminal.warn(terminal.warnPaint.faint(`container ${added.container} of pod ${added.pod.name}`));
  try {
    const started = await startOf(context, added, signal);
    const output = new LogOutput(terminal, { follow: true });
    const ended = async (): Promise<boolean> => (await viewOf(context, added))?.state === "terminated";
    await output.all(followLog(context, clock, started.logPath, { ended, signal }), signal);
    signal.throwIfAborted();
    const { exitCode = 0, reason = "" } = (await viewOf(context, added)) ?? {};
    if (exitCode === 0) return ExitCode.done;
    throw new PodwrightError(ExitCode.failed, `container ${added.container} ended with code ${exitCode} (${reason})`);
  } catch (error) {
    if (!signal.aborted) throw error;
    const logs = ownCommand(context.layout.stateDirectory, "logs", podLabel(added.pod), added.container);
    throw new PodwrightError(ExitCode.failed, `stopped waiting; container ${added.container} keeps running`, {
      remedy: `'${logs}' shows its output; it stops with its pod`,
    });
  }
}

/** Waits until the container has started. @throws PodwrightError when it cannot be started */
async function startOf(context: MachineContext, added: DebugContainer, signal: AbortSignal): Promise<ContainerView> {
  const { clock, layout } = context;
  const whyCommand = ownCommand(layout.stateDirectory, "why", podLabel(added.pod));
  const deadline = clock.monotonic() + takenUpWithinMs;
  for (;;) {
    const view = await viewOf(context, added);
    if (view === undefined) {
      if (clock.monotonic() >= deadline) throw notTakenUp(added, whyCommand);
    } else if (view.state !== "waiting") {
      return view;
    } else if (!onItsWay.has(view.reason)) {
      throw new PodwrightError(
        ExitCode.failed,
        `container ${view.name} does not start: ${view.reason}: ${view.message}`,
        { remedy: `'${whyCommand}' shows more; the start is retried while the pod runs` },
      );
    }
    await clock.sleep("the start of a debug container", pollMs, signal);
  }
}

function notTakenUp({ pod, container }: DebugContainer, whyCommand: string): PodwrightError {
  const problem = `pod ${pod.name} did not start container ${container} within ${takenUpWithinMs / 1000} s`;
  return new PodwrightError(ExitCode.failed, problem, {
    remedy: `'${whyCommand}' shows what the pod waits for`,
  });
}

/**
 * The container's view; undefined while the pod's status lacks it, which does not mean that either has ended.
 * @throws PodwrightError when the pod has ended
 */
async function viewOf(
  { engine }: MachineContext,
  { pod, container }: DebugContainer,
): Promise<ContainerView | undefined> {
  const listing = await listPods(engine);
  const view = listing.views.find(({ uid }) => uid === pod.uid);
  const over = view !== undefined && view.state !== "syncing";
  if (over || gonePods([pod], listing).length > 0) {
    throw new PodwrightError(ExitCode.failed, `pod ${pod.name} has ended`);
  }
  return view?.ephemeralContainers.find(({ name }) => name === container);
}
