import { resolve } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { why } from "../journal/explain.ts";
import { renderWhy } from "../journal/render.ts";
import { formatDuration } from "../journal/text.ts";
import type { PodRef } from "../journal/entry.ts";
import type { AppliedPod, Health, PodView } from "../server/local-api.ts";
import type { MachineContext } from "./machine-context.ts";
import { ensureEngine, type EngineStart, evictsForNode } from "./engine-process.ts";
import { EngineSession } from "./engine-session.ts";
import { printError, printWarning } from "./error-output.ts";
import { plural } from "./format.ts";
import { Interrupts } from "./interrupts.ts";
import { keptText } from "./kept-text.ts";
import { printLastOutput } from "./last-output.ts";
import { loadInput, located } from "./manifest-input.ts";
import { holdsStorage } from "../sources/held-storage.ts";
import { podLabel } from "../server/pod-selector.ts";
import { nextSteps } from "./next-steps.ts";
import { ownCommand } from "./own-command.ts";
import { notReadyLines } from "./pod-text.ts";
import { type RunEnd, runEnd, type WaitFor, waitResult } from "./pod-wait.ts";
import { followPods } from "./run-follow.ts";
import { RunProgress } from "./run-progress.ts";
import { nothingStored, podsBeingStopped, stopText, storedPods } from "./stored-pods.ts";
import { requestStop, servedLines, waitUntilGone } from "./stopping.ts";

export interface RunOptions {
  readonly detach?: true;
  readonly wait: WaitFor;
  /** Milliseconds. */
  readonly timeout: number;
  readonly keep?: true;
  readonly runtimeEndpoint?: string;
  readonly record?: string;
  readonly evict?: boolean;
  readonly json?: true;
}

/** A run whose pods were applied. */
interface Run {
  readonly context: MachineContext;
  readonly options: RunOptions;
  readonly session: EngineSession;
  readonly pods: readonly PodRef[];
  readonly startedAt: number;
  /** Sequence number of the first journal entry of this run. */
  readonly sinceSeq: number;
  readonly interrupts: Interrupts;
}

/**
 * `podwright run`: applies the manifests, starting the engine if none runs, and shows the pods' progress. In the
 * foreground it stays until the pods have ended or Ctrl-C stops them. Invalid manifests are reported, the others run,
 * and the exit code is 2. An error in storage documents rejects everything. Pods that were being stopped when the engine
 * ended are not waited for.
 */
export async function runCommand(
  context: MachineContext,
  inputs: readonly string[],
  options: RunOptions,
): Promise<ExitCode> {
  const { terminal, clock, layout } = context;
  const { stateDirectory } = layout;
  using interrupts = new Interrupts(process, terminal.closed);
  const { request, errors, warnings, origins } = await loadInput(context, inputs, interrupts.first);
  for (const error of errors) printError(terminal, error);
  for (const warning of warnings) printWarning(terminal, warning);
  if (holdsStorage({ errors, storage: request.storage ?? [] })) {
    throw new PodwrightError(ExitCode.badInput, "nothing is applied: claims could be bound to the wrong volumes", {
      remedy: "correct the errors above, or omit those manifests",
    });
  }
  const { storage = [] } = request;
  const isStorageOnly = request.pods.length === 0 && storage.length > 0;
  if (inputs.length > 0 && request.pods.length === 0 && !isStorageOnly) {
    if (errors.length > 0) return ExitCode.badInput;
    throw new PodwrightError(ExitCode.badInput, `no pod in ${inputs.join(", ")}`, {
      remedy: "use a file with an object of kind Pod",
    });
  }
  const startedAt = clock.now();
  const start = engineStart(options);
  // Looked for before an engine starts, which may complete their stop at once.
  const stopping = inputs.length === 0 ? await podsBeingStopped(context) : [];
  terminal.live([terminal.paint.faint("starting the engine …")]);
  const health = await ensureEngine(context, start, interrupts.first).finally(() => terminal.live([]));
  const session = new EngineSession(context, start, interrupts.first);
  const applyLocated = (): Promise<readonly AppliedPod[]> =>
    session
      .call((engine) => engine.apply({ ...request, runsAgain: true }))
      .catch((error: unknown) => {
        throw located(error, origins);
      });
  const pods = inputs.length === 0 ? await storedPods(session, stopping) : await applyLocated();
  if (isStorageOnly || (pods.length === 0 && stopping.length > 0)) {
    const text = isStorageOnly ? keptText(storage, ownCommand(stateDirectory, "volumes")) : stopText(stopping);
    const nothing = { wait: "none", reached: true, pods: [] };
    terminal.print(options.json === true ? JSON.stringify(nothing, undefined, 2) : text);
    return errors.length > 0 ? ExitCode.badInput : ExitCode.done;
  }
  if (pods.length === 0) throw nothingStored(context, health);
  const run: Run = { context, options, session, pods, startedAt, sinceSeq: health.journalSeq + 1, interrupts };
  if (options.json !== true) {
    const alsoStopping = stopping.length === 0 ? [] : [stopText(stopping)];
    terminal.print([...headline(pods, health, start, context), ...alsoStopping].join("\n"));
  }
  const exitCode = options.detach === true ? await detached(run) : await foreground(run);
  return exitCode === ExitCode.done && errors.length > 0 ? ExitCode.badInput : exitCode;
}

/** Says what nobody asked for in this run: evictions and a runtime that an earlier one did. */
function headline(
  pods: readonly PodRef[],
  health: Health,
  start: EngineStart,
  { layout, terminal }: MachineContext,
): string[] {
  const { faint } = terminal.paint;
  const names = pods.length > 5 ? plural(pods.length, "pod") : pods.map(podLabel).join(", ");
  const remembered = start.evict === undefined && evictsForNode(health);
  const { runtimeEndpoint } = health;
  const isElsewhere = start.runtimeEndpoint === undefined && runtimeEndpoint !== layout.containerd.endpoint;
  return [
    `running ${names} ${faint(`on ${health.runtime}, engine process ${health.pid}`)}`,
    ...(remembered ? [faint("evictions for the node are on, by --evict of an earlier run")] : []),
    ...(isElsewhere ? [faint(`the runtime is ${runtimeEndpoint}, by --runtime-endpoint of an earlier run`)] : []),
  ];
}

/** `--detach`: returns once the pods have reached the state of `--wait`, have failed, or at the timeout. */
async function detached(run: Run): Promise<ExitCode> {
  const { context, options, session, pods, interrupts } = run;
  const { terminal, clock } = context;
  const json = options.json === true;
  const progress = json
    ? undefined
    : new RunProgress(pods, run.startedAt, terminal.paint, context.layout.stateDirectory);
  const deadline = clock.monotonic() + options.timeout;
  const result =
    options.wait === "none"
      ? waitResult(pods, [], "none")
      : await followPods(context, session, {
          pods,
          sinceSeq: run.sinceSeq,
          progress,
          signal: interrupts.first,
          decide: (views) => {
            const state = waitResult(pods, views, options.wait);
            return state.state !== "waiting" || clock.monotonic() >= deadline ? state : undefined;
          },
        }).catch((error: unknown) => {
          throw interrupts.first.aborted ? leftRunning(run) : error;
        });
  if (json) {
    const uids = new Set(pods.map((pod) => pod.uid));
    const views = (await session.call((engine) => engine.pods())).filter((view) => uids.has(view.uid));
    terminal.print(
      JSON.stringify({ wait: options.wait, reached: result.state === "reached", pods: views }, undefined, 2),
    );
  }
  if (result.state === "reached") {
    if (!json) printNext(run);
    return ExitCode.done;
  }
  const waitedMs = options.timeout - Math.max(deadline - clock.monotonic(), 0);
  await explainMissing(run, result.missing, waitedMs);
  return ExitCode.failed;
}

/** Prints suggestions on terminals only. */
function printNext({ context: { terminal, layout }, pods }: Run): void {
  if (terminal.interactive) terminal.print(`next:\n${nextSteps(pods, layout.stateDirectory).join("\n")}`);
}

function leftRunning(run: Run): PodwrightError {
  return new PodwrightError(ExitCode.failed, "stopped waiting; the pods keep running", { remedy: stopHint(run) });
}

function stopHint({ context: { layout }, pods }: Run): string {
  return `'${ownCommand(layout.stateDirectory, "stop", ...pods.map(podLabel))}' stops them`;
}

/** Prints the explanation of `podwright why` for each pod that did not reach the state. */
async function explainMissing(
  { context, options, session }: Run,
  missing: readonly { readonly ref: PodRef; readonly view: PodView | undefined }[],
  waitedMs: number,
): Promise<void> {
  const { terminal, clock } = context;
  const entries = await session.call((engine) => engine.entries({}));
  for (const { ref, view } of missing) {
    const failed = view?.phase === "Failed";
    const problem = failed ? "failed" : `is not ${options.wait} after ${formatDuration(waitedMs)}`;
    const reasons = view === undefined ? ["the engine does not list it"] : notReadyLines(view);
    terminal.warn(`${terminal.warnPaint.bad("podwright:")} ${podLabel(ref)} ${problem}: ${reasons.join("; ")}`);
    const explanation = why(entries, { uid: ref.uid });
    if (explanation === undefined) continue;
    terminal.warn(renderWhy(explanation, { now: clock.now(), paint: terminal.warnPaint }).trimEnd());
  }
}

/** Stays until the pods have ended, or it is interrupted. */
async function foreground(run: Run): Promise<ExitCode> {
  const { context, options, session, pods, interrupts } = run;
  const { terminal } = context;
  const progress = new RunProgress(pods, run.startedAt, terminal.paint, context.layout.stateDirectory);
  let hinted = false;
  let last: ReadonlyMap<string, PodView> = new Map();
  let end: RunEnd;
  try {
    end = await followPods(context, session, {
      pods,
      sinceSeq: run.sinceSeq,
      progress,
      signal: interrupts.first,
      decide: (views, seen) => {
        const ready = waitResult(pods, views, "ready").state === "reached";
        const over = runEnd(pods, seen, views);
        last = seen;
        if (ready && !hinted && over === undefined) {
          hinted = true;
          printNext(run);
          terminal.print(
            terminal.paint.faint(`Ctrl-C ${options.keep === true ? "leaves them running" : "stops them"}`),
          );
        }
        return over;
      },
    });
  } catch (error) {
    if (!interrupts.first.aborted) throw error;
    return interrupted(run);
  }
  // Ended pods are removed: the engine ends with its last pod.
  if (options.keep !== true) {
    await printLastOutput(
      context,
      pods.flatMap(({ uid }) => last.get(uid) ?? []),
    );
    await stopAll(run, 0);
  }
  return end === "well" ? ExitCode.done : ExitCode.failed;
}

/** Ctrl-C stops the pods within their grace period; the second one stops them immediately, the third leaves. */
async function interrupted(run: Run): Promise<ExitCode> {
  const { context, options } = run;
  const { terminal } = context;
  if (options.keep === true) {
    terminal.print(`the pods keep running; ${stopHint(run)}`);
    return ExitCode.done;
  }
  await stopAll(run, undefined);
  return ExitCode.done;
}

function engineStart({ runtimeEndpoint, record, evict }: RunOptions): EngineStart {
  return {
    ...(runtimeEndpoint !== undefined && { runtimeEndpoint }),
    ...(record !== undefined && { record: resolve(process.cwd(), record) }),
    ...(evict !== undefined && { evict }),
  };
}

async function stopAll(run: Run, graceSeconds: number | undefined): Promise<void> {
  const { context, options, pods, interrupts } = run;
  const { terminal } = context;
  const start = engineStart(options);
  const leave = new AbortController();
  const { signal } = leave;
  const session = new EngineSession(context, start, signal);
  interrupts.onInterrupt = (count) => {
    if (count > 2) {
      leave.abort();
    } else if (count === 2) {
      if (!terminal.interactive) terminal.print("stopping immediately");
      requestStop(context, session, pods, { graceSeconds: 0, signal }).catch((error: unknown) => {
        if (!signal.aborted) printError(terminal, error);
      });
    }
  };
  try {
    const stopped = await requestStop(context, session, pods, { graceSeconds, signal });
    for (const line of servedLines(stopped)) printWarning(terminal, new Error(line));
    if (graceSeconds === undefined && terminal.interactive) {
      terminal.print(terminal.paint.faint("Ctrl-C again: without waiting for the grace period"));
    }
    await waitUntilGone(context, session, pods, { quiet: graceSeconds !== undefined, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new PodwrightError(ExitCode.failed, "stopped waiting; the engine continues to stop the pods", {
      remedy: `'${ownCommand(context.layout.stateDirectory, "ps")}' shows the progress`,
    });
  } finally {
    interrupts.onInterrupt = undefined;
  }
}
