import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import type { Readable } from "node:stream";
import { onAbort } from "../../base/abort.ts";
import { DeadlineError } from "../../base/deadline.ts";
import type { CommandOptions, CommandResult, ProcessInfo, Processes } from "../../ports/processes.ts";
import { systemClock } from "./clock.ts";
import { processArguments } from "./process-arguments.ts";

/** Bytes kept of stdout and stderr each; the rest is read and dropped, so that the program never blocks. */
const keptOutputBytes = 1024 * 1024;

/** How long to wait for the end of output after the program's exit: a background process may keep the pipe open. */
const outputGraceMs = 2_000;

/**
 * The machine's processes. Programs run in their own session, so Ctrl-C in podwright's terminal does not reach them,
 * and at their time limit they are killed with their children. `environment` is added to podwright's own.
 */
export const systemProcesses: Processes = {
  ownPid: process.pid,
  run,
  list,
  sharesRoot(pid) {
    try {
      const [own, its] = [statSync("/"), statSync(`/proc/${pid}/root/`)];
      return own.dev === its.dev && own.ino === its.ino;
    } catch (error) {
      return ["EACCES", "EPERM"].includes(errnoOf(error) ?? "");
    }
  },
  isAlive(pid) {
    if (!signalled(pid, 0, true)) return false;
    try {
      return !isDead(readFileSync(`/proc/${pid}/stat`, "latin1"));
    } catch {
      return false;
    }
  },
  kill: (pid, signal) => signalled(pid, signal, false),
};

/** Signals exactly one process: 0 and negative numbers would mean whole groups. */
function signalled(pid: number, signal: NodeJS.Signals | 0, deniedMeansAlive: boolean): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) throw new RangeError(`${pid} is not a process ID`);
  try {
    return process.kill(pid, signal);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ESRCH") return false;
    if (code === "EPERM" && deniedMeansAlive) return true;
    throw error;
  }
}

/**
 * True for zombies and dead processes, by the state field of /proc/PID/stat; the name before it may contain anything.
 */
function isDead(stat: string): boolean {
  const state = stat.charAt(stat.lastIndexOf(")") + 2);
  return state === "Z" || state === "X" || state === "";
}

async function list(): Promise<ProcessInfo[]> {
  const pids = (await readdir("/proc")).filter((name) => /^[0-9]+$/.test(name));
  const found: ProcessInfo[] = [];
  // One after the other and asynchronously: reading the arguments of a stuck process can block for long.
  for (const pid of pids) {
    try {
      const name = await readFile(`/proc/${pid}/comm`, "utf8");
      const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8");
      found.push({ pid: Number(pid), name: name.replace(/\n$/, ""), arguments: processArguments(commandLine) });
    } catch (error) {
      if (!["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(errnoOf(error) ?? "")) throw error;
    }
  }
  return found;
}

async function run(program: string, arguments_: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const { signal, stdin, timeoutMs, environment, onStart } = options;
  signal?.throwIfAborted();
  const child = spawn(program, arguments_, {
    detached: true,
    stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  if (child.pid !== undefined) onStart?.(child.pid);
  const { promise, resolve, reject } = Promise.withResolvers<CommandResult>();
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);

  // A program may exit without reading its input.
  child.stdin?.on("error", () => {});
  child.stdin?.end(stdin);

  const giveUp = (reason: unknown): void => {
    killGroup(child);
    reject(reason);
  };
  using _signal = onAbort(signal, () => giveUp(signal?.reason));
  using _deadline = systemClock.timer(`${program} to end`, timeoutMs, () => {
    giveUp(new DeadlineError(`running ${program}`, timeoutMs));
  });
  let outputGrace: Disposable | undefined;

  child.once("error", (error) => reject(new Error(`cannot run ${program}: ${error.message}`, { cause: error })));
  child.once("exit", (exitCode, signalName) => {
    const finish = (): void => {
      resolve({
        exitCode: exitCode ?? undefined,
        signal: signalName ?? undefined,
        stdout: stdout(),
        stderr: stderr(),
      });
    };
    child.once("close", finish);
    outputGrace = systemClock.timer(`the output of ${program} to end`, outputGraceMs, finish);
  });
  try {
    return await promise;
  } finally {
    outputGrace?.[Symbol.dispose]();
    child.stdin?.destroy();
    child.stdout?.destroy();
    child.stderr?.destroy();
    // An unkillable process (uninterruptible sleep) must not keep podwright alive.
    child.unref();
  }
}

/** Kills the program and its children, as far as they are in its process group. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

/** Reads a stream to its end and keeps the beginning; the result returns what is kept so far, as text. */
function collect(stream: Readable | null): () => string {
  const chunks: Buffer[] = [];
  let length = 0;
  stream?.on("error", () => {});
  stream?.on("data", (chunk: Buffer) => {
    const kept = chunk.subarray(0, keptOutputBytes - length);
    if (kept.length === 0) return;
    chunks.push(kept);
    length += kept.length;
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
