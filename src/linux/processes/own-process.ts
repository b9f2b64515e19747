import { readFile, writeFile } from "node:fs/promises";
import { errnoOf, onPath } from "../file-error.ts";

const scorePath = "/proc/self/oom_score_adj";
const namePath = "/proc/self/comm";

/**
 * Sets oom_score_adj of this process, −1000..1000; higher is killed earlier. Rejects with a FileError: `EACCES` or
 * `EPERM` where lowering it is not permitted.
 */
export async function setOomScoreAdjust(score: number): Promise<void> {
  await onPath(scorePath, () => writeFile(scorePath, String(score), { flag: "w" }));
}

/**
 * Gives this process a name, with its arguments, by which it is listed and found: `pgrep -x kubelet`, `ps -C kubelet`. They
 * become one text, in which an argument with a space looks like two.
 */
export async function nameProcess(name: string, arguments_: readonly string[]): Promise<void> {
  process.title = [name, ...arguments_].join(" ");
  // The title's beginning, arguments included, has become the kernel's name of the process.
  await onPath(namePath, () => writeFile(namePath, name, { flag: "w" }));
}

/** The limit of open files of this process; Infinity: none. Node.js raises the soft limit to the hard one. */
export async function openFilesLimit(): Promise<number> {
  const limits = await readFile("/proc/self/limits", "utf8");
  const soft = /^Max open files +(\S+)/mu.exec(limits)?.[1];
  return soft === undefined || soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}

/** Whether the machine uses swap (/proc/swaps); false on kernels without swap. */
export async function isSwapOn(): Promise<boolean> {
  try {
    const table = await readFile("/proc/swaps", "utf8");
    return table.trim().split("\n").length > 1;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}
