import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { ProcessInfo, Processes } from "../ports/processes.ts";
import type { RuntimeLayout } from "./layout.ts";

/**
 * The process id of the layout's containerd: the process that was started with the layout's configuration file. Asking
 * /proc each time needs no pid file, which could be stale, lost, or name a process that got the number later.
 */
export async function findContainerd(processes: Processes, layout: RuntimeLayout): Promise<number | undefined> {
  const found = (await processes.list()).find((process) => {
    return isContainerdOf(process, layout) && processes.sharesRoot(process.pid);
  });
  return found?.pid;
}

export function isContainerdOf({ arguments: words }: ProcessInfo, layout: RuntimeLayout): boolean {
  const flag = words.indexOf("--config");
  return baseName(words[0]) === "containerd" && flag > 0 && words[flag + 1] === layout.containerd.config;
}

/** Shims of the layout's containerd, of which each holds a sandbox; they live on while containerd is away. */
export async function findShims(processes: Processes, layout: RuntimeLayout): Promise<number[]> {
  const shims = (await processes.list()).filter(
    ({ pid, arguments: words }) =>
      baseName(words[0]).startsWith("containerd-shim") &&
      words.includes(layout.containerd.socket) &&
      processes.sharesRoot(pid),
  );
  return shims.map(({ pid }) => pid);
}

const TERM_LIMIT_MS = 15_000;
const KILL_LIMIT_MS = 5_000;
const POLL_MS = 20;

/** Ends the layout's containerd: SIGTERM, and SIGKILL when that did not help. Nothing to end is no error. */
export async function endContainerd(
  { clock, processes }: { readonly clock: Clock; readonly processes: Processes },
  layout: RuntimeLayout,
): Promise<void> {
  for (const [signal, limitMs] of [
    ["SIGTERM", TERM_LIMIT_MS],
    ["SIGKILL", KILL_LIMIT_MS],
  ] as const) {
    const pid = await findContainerd(processes, layout);
    if (pid === undefined || !processes.kill(pid, signal)) return;
    const limit = clock.monotonic() + limitMs;
    while (clock.monotonic() < limit) {
      if (!processes.isAlive(pid)) return;
      await clock.sleep(`containerd (pid ${pid}) to end`, POLL_MS);
    }
  }
  throw new PodwrightError(
    ExitCode.failed,
    `the containerd of ${layout.stateDirectory} does not stop, even after SIGKILL`,
    {
      remedy: "look for processes in uninterruptible sleep (state D) and what they wait for",
    },
  );
}

/**
 * Ends the shims of a containerd that has ended and had no sandbox: containerd 2 forgets the shim of a sandbox whose
 * first process died by itself, and that shim would live forever (https://github.com/containerd/containerd/issues/10421).
 */
export async function endShims(processes: Processes, layout: RuntimeLayout): Promise<void> {
  for (const pid of await findShims(processes, layout)) processes.kill(pid, "SIGKILL");
}

const TAIL_BYTES = 16 * 1024;
const TAIL_LINES = 12;

/** The last lines that containerd wrote since its log had `fromOffset` bytes. */
export async function logTail(files: Files, layout: RuntimeLayout, fromOffset: number): Promise<string[]> {
  try {
    const size = (await files.stat(layout.containerd.log))?.size ?? 0;
    const start = Math.max(fromOffset, size - TAIL_BYTES);
    const text = Buffer.from(await files.readRange(layout.containerd.log, start, TAIL_BYTES)).toString("utf8");
    return text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-TAIL_LINES);
  } catch {
    return [];
  }
}

function baseName(path: string | undefined): string {
  return path === undefined ? "" : path.slice(path.lastIndexOf("/") + 1);
}
