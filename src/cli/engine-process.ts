import { chosenRuntime, runtimeOfPods } from "../agent/kept-settings.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { version } from "../base/version.ts";
import { requireStateFormat } from "../private-runtime/state-format.ts";
import { preflight, requireReady } from "../private-runtime/preflight/preflight.ts";
import type { Health } from "../server/local-api.ts";
import type { MachineContext } from "./machine-context.ts";
import { EngineGone } from "./engine-client.ts";
import { printable } from "../journal/text.ts";

/** Limit from the engine's start to its first response: it may have to start containerd and import images. */
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 40;
/** After this time without a response the engine is reported as hanging. */
const HEALTH_TIMEOUT_MS = 10_000;
const LOG_TAIL_BYTES = 4096;

export interface EngineStart {
  /** A CRI endpoint; undefined: that of the runtime in which its pods are, or the private containerd's. */
  readonly runtimeEndpoint?: string;
  /** The file to which the engine records decisions, absolute. */
  readonly record?: string;
  /** Evicts pods when the machine runs out of memory or disk; undefined: if the engine before did. */
  readonly evict?: boolean;
}

/** The log file of an engine that a command started. */
export function engineLogPath(context: Pick<MachineContext, "layout">): string {
  return `${context.layout.stateDirectory}/engine.log`;
}

/** The engine's health; undefined when none runs. */
export async function findEngine(
  context: Pick<MachineContext, "clock" | "engine" | "layout">,
): Promise<Health | undefined> {
  try {
    return await withDeadline(context.clock, "the engine's response", HEALTH_TIMEOUT_MS, undefined, (signal) => {
      return context.engine.health(signal);
    });
  } catch (error) {
    if (error instanceof EngineGone) return undefined;
    if (!(error instanceof DeadlineError)) throw error;
    const { what, hangRemedy } = context.engine;
    throw new PodwrightError(ExitCode.failed, `the ${what} hangs: ${error.message}`, { remedy: hangRemedy });
  }
}

/** Ends the engine; its pods keep running. */
export async function endEngine({ engine }: Pick<MachineContext, "engine">): Promise<void> {
  await engine.shutdown("keep").catch((error: unknown) => {
    // It may have ended by itself: an engine without pods does.
    if (!(error instanceof EngineGone)) throw error;
  });
}

/**
 * Ensures that an engine runs for the state directory: checks the machine, starts the engine in its own session and
 * waits for its first response. Rejects with PodwrightError: environment when the machine is unsuitable, bad input when its
 * pods are in another runtime than the one asked for, failed with the end of the engine's log when it does not start.
 */
export async function ensureEngine(context: MachineContext, start: EngineStart, signal: AbortSignal): Promise<Health> {
  const running = await findEngine(context);
  if (running !== undefined) return checkFits(running, start);
  if ((await nextRuntime(context, start)) === undefined) await checkMachine(context);
  else if (process.getuid?.() !== 0) throw needsRoot();
  else await requireStateFormat(context.files, context.layout.stateDirectory, version);
  signal.throwIfAborted();
  const deadline = context.clock.monotonic() + START_TIMEOUT_MS;
  for (;;) {
    const met = await passOtherEngines(context, deadline, signal);
    if (met !== undefined) return checkFits(met, start);
    signal.throwIfAborted();
    if (context.clock.monotonic() >= deadline) throw await silent(context);
    // Read again: an engine that has ended meanwhile may have had the last pod.
    const runtimeEndpoint = await nextRuntime(context, start);
    const { pid, failure } = await startEngine(context, start, runtimeEndpoint);
    const health = await waitForEngine(context, pid, deadline, signal);
    if (health !== undefined) return checkFits(health, start);
    // Unless another client started one at the same time, and won.
    if (!(await anotherEngineLives(context))) throw await failure();
  }
}

/** The endpoint that the next engine uses; undefined: the private containerd. @throws PodwrightError as `chosenRuntime` */
async function nextRuntime({ files, layout }: MachineContext, start: EngineStart): Promise<string | undefined> {
  return chosenRuntime(start.runtimeEndpoint, await runtimeOfPods(files, layout), layout);
}

/** An engine is still starting, or hangs; another one could only wait for it. */
async function silent(context: MachineContext): Promise<PodwrightError> {
  const pids = await enginePids(context);
  const [first, ...others] = pids;
  const which = others.length === 0 ? `process ${first}` : `processes ${pids.join(", ")}`;
  // It may have ended just now.
  const shown = first === undefined ? "" : ` (${which})`;
  const message = `the engine${shown} did not answer within ${START_TIMEOUT_MS / 1000} s`;
  return new PodwrightError(ExitCode.failed, message, {
    remedy: `see ${engineLogPath(context)}; if it is still starting, run the command again later`,
  });
}

async function startEngine(
  context: MachineContext,
  start: EngineStart,
  runtimeEndpoint: string | undefined,
): Promise<{ readonly pid: number; readonly failure: () => Promise<PodwrightError> }> {
  await context.files.makeDirectory(context.layout.stateDirectory, 0o711);
  const logPath = engineLogPath(context);
  const logBefore = (await context.files.stat(logPath))?.size ?? 0;
  const { pid } = await context.daemons.start({
    program: process.execPath,
    arguments: engineArguments(context, start, runtimeEndpoint),
    logPath,
    environment: {},
    workingDirectory: "/",
  });
  return { pid, failure: async () => engineFailure(await logSince(context, logPath, logBefore), logPath) };
}

/**
 * Waits for engines that do not answer: another client may just have started one, or one may be stopping containerd, and
 * holds the state directory until it has ended. @returns undefined when none is left
 */
async function passOtherEngines(
  context: MachineContext,
  deadline: number,
  signal: AbortSignal,
): Promise<Health | undefined> {
  while (await anotherEngineLives(context)) {
    const health = await findEngine(context);
    if (health !== undefined) return health;
    if (context.clock.monotonic() >= deadline) return undefined;
    await context.clock.sleep("another engine to answer or to end", POLL_MS, signal);
  }
  return undefined;
}

async function anotherEngineLives(context: MachineContext): Promise<boolean> {
  return (await enginePids(context)).length > 0;
}

/** Engine processes of the state directory, including those that do not answer yet, or no longer. */
export async function enginePids({
  processes,
  layout,
}: Pick<MachineContext, "processes" | "layout">): Promise<readonly number[]> {
  const engines = (await processes.list()).filter(({ pid, arguments: words }) => {
    const flag = words.indexOf("--state-dir");
    const isEngine = words.slice(0, Math.max(flag, 0)).includes("engine") && words[flag + 1] === layout.stateDirectory;
    return isEngine && processes.sharesRoot(pid);
  });
  return engines.map(({ pid }) => pid);
}

/** With the runtime also where it is kept: other node agents find its users by their arguments. */
function engineArguments(context: MachineContext, start: EngineStart, runtimeEndpoint: string | undefined): string[] {
  const [, script] = process.argv;
  if (script === undefined) throw new Error("cannot find podwright's own executable");
  const endpoint = runtimeEndpoint === undefined ? [] : ["--runtime-endpoint", runtimeEndpoint];
  const record = start.record === undefined ? [] : ["--record", start.record];
  const evict = start.evict === undefined ? [] : [start.evict ? "--evict" : "--no-evict"];
  const options = [...endpoint, ...record, ...evict];
  return [...process.execArgv, script, "engine", "--state-dir", context.layout.stateDirectory, ...options];
}

function needsRoot(): PodwrightError {
  return new PodwrightError(ExitCode.environment, "running pods requires root", {
    remedy: "run it with sudo",
  });
}

async function checkMachine(context: MachineContext): Promise<void> {
  const { files, mounts, processes, layout } = context;
  requireReady(await preflight({ files, mounts, processes, layout, searchPath: searchPath(context) }));
}

/** The absolute directories of PATH. */
export function searchPath(context: Pick<MachineContext, "environment">): string[] {
  return (context.environment["PATH"] ?? "").split(":").filter((directory) => directory.startsWith("/"));
}

/** Undefined: it has ended, or did not answer in time. The response may come from another client's engine, which is as good. */
async function waitForEngine(
  context: MachineContext,
  pid: number,
  deadline: number,
  signal: AbortSignal,
): Promise<Health | undefined> {
  while (context.clock.monotonic() < deadline) {
    const alive = context.processes.isAlive(pid);
    const health = await findEngine(context);
    if (health !== undefined) return health;
    if (!alive) return undefined;
    await context.clock.sleep("the engine's socket", POLL_MS, signal);
  }
  return undefined;
}

/** Whether the engine evicts pods when the machine runs out of memory or disk. */
export function evictsForNode({ checks }: Pick<Health, "checks">): boolean {
  return checks.some(({ name }) => name === "pressure");
}

function checkFits(health: Health, start: EngineStart): Health {
  if (start.record !== undefined && start.record !== health.record) {
    const does = health.record === undefined ? "does not record" : `records to ${health.record}`;
    throw new PodwrightError(ExitCode.badInput, `the running engine ${does}, which cannot be changed while it runs`, {
      remedy: "omit --record, stop its pods first, or use another --state-dir",
    });
  }
  if (start.evict !== undefined && start.evict !== evictsForNode(health)) {
    const does = start.evict ? "does not evict" : "evicts";
    throw new PodwrightError(ExitCode.badInput, `the running engine ${does} pods under memory or disk pressure`, {
      remedy: `omit ${start.evict ? "--evict" : "--no-evict"}, stop its pods first, or use another --state-dir`,
    });
  }
  if (start.runtimeEndpoint === undefined || start.runtimeEndpoint === health.runtimeEndpoint) return health;
  throw new PodwrightError(
    ExitCode.badInput,
    `the running engine uses ${health.runtimeEndpoint}, not ${start.runtimeEndpoint}`,
    { remedy: "omit --runtime-endpoint, or use another --state-dir" },
  );
}

async function logSince(context: MachineContext, path: string, offset: number): Promise<string> {
  const size = (await context.files.stat(path))?.size ?? 0;
  const from = Math.max(offset, size - LOG_TAIL_BYTES);
  const bytes = await context.files.readRange(path, from, Math.max(size - from, 0));
  return new TextDecoder().decode(bytes);
}

const remedyMark = "  → ";

/** The engine's last printed error with its remedy, else the end of its log. */
export function engineFailure(log: string, logPath: string): PodwrightError {
  const lines = log.split("\n").filter((line) => line.trim() !== "");
  const own = lines.findLastIndex((line) => line.startsWith("podwright: "));
  const exitCode = own >= 0 ? ExitCode.environment : ExitCode.failed;
  const complaint = own >= 0 ? lines.slice(own) : lines.slice(-5);
  const remedy = own >= 0 ? complaint.find((line) => line.startsWith(remedyMark)) : undefined;
  const shown = complaint.filter((line) => line !== remedy).map((line) => printable(line.replace(/^podwright: /, "")));
  const message = ["the engine did not start", ...(shown.length > 0 ? [shown.join("\n  ")] : [])].join(": ");
  return new PodwrightError(exitCode, message, {
    remedy: remedy === undefined ? `see ${logPath}` : printable(remedy.slice(remedyMark.length)),
  });
}
