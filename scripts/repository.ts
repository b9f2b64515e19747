/** This repository, for scripts that pack it. */
import { type ChildProcess, execFile } from "node:child_process";
import { dirname } from "node:path";
import { promisify } from "node:util";

export const root = dirname(import.meta.dirname);

const maxOutputBytes = 64 * 1024 * 1024;

let interruption: Error | undefined;
const children = new Set<ChildProcess>();

/**
 * Runs a script's work, which tidies up behind itself, also at a signal: the programs of {@link output} end, and it throws.
 * A second signal ends the script at once.
 */
export async function orderly(work: () => Promise<void>): Promise<void> {
  let received: NodeJS.Signals | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      received = signal;
      interruption = new Error(`interrupted by ${signal}`);
      for (const child of children) child.kill();
    });
  }
  try {
    await work();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
  // For who waits for it, as if nobody had listened.
  if (received !== undefined) process.kill(process.pid, received);
}

/**
 * Runs a program at the repository's root, and returns what it prints, without blanks around it.
 * @throws when it fails, or the script is to end
 */
export async function output(
  program: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  if (interruption !== undefined) throw interruption;
  const env = { ...process.env, ...environment };
  const running = promisify(execFile)(program, words, { cwd: root, env, maxBuffer: maxOutputBytes });
  children.add(running.child);
  try {
    const { stdout } = await running;
    return stdout.trim();
  } catch (error) {
    throw interruption ?? error;
  } finally {
    children.delete(running.child);
  }
}

/**
 * What all that is packed is dated with, in seconds since the Unix epoch: SOURCE_DATE_EPOCH, else the time of the commit.
 * @throws Error when SOURCE_DATE_EPOCH is no number
 */
export async function sourceEpoch(): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"];
  if (given !== undefined && !/^\d+$/u.test(given)) throw new Error(`SOURCE_DATE_EPOCH is no number: ${given}`);
  return Number(given ?? (await output("git", ["log", "-1", "--format=%ct"])));
}
