import type { Files } from "../../ports/files.ts";
import type { Mounts } from "../../ports/mounts.ts";
import type { Processes } from "../../ports/processes.ts";
import type { RuntimeLayout } from "../layout.ts";

/** One finding about this machine, one line each for people. */
export interface Check {
  /** Stable lower-case words, e.g. `control groups`. */
  readonly name: string;
  readonly ok: "ok" | "warning" | "failed";
  /** What was found: one clause. */
  readonly detail: string;
  /** What to do about it: one clause; only where something is to be done. */
  readonly remedy?: string;
}

/** The inputs of a check. */
export interface CheckContext {
  readonly files: Files;
  readonly mounts: Mounts;
  readonly processes: Processes;
  readonly layout: RuntimeLayout;
  /** Directories to search for programs before the system's own, as in `PATH`. */
  readonly searchPath: readonly string[];
  /** Of a state directory that does not exist, its nearest existing parent is checked, and it is not created. */
  readonly onlyLooks?: true;
  readonly signal?: AbortSignal;
}

export function passed(name: string, detail: string): Check {
  return { name, ok: "ok", detail };
}

export function warned(name: string, detail: string, remedy: string): Check {
  return { name, ok: "warning", detail, remedy };
}

export function failed(name: string, detail: string, remedy: string): Check {
  return { name, ok: "failed", detail, remedy };
}

/** A short text file such as those of /proc; undefined when it can't be read. */
export async function readText(files: Files, path: string): Promise<string | undefined> {
  try {
    return Buffer.from(await files.read(path, 1024 * 1024)).toString("utf8");
  } catch {
    return undefined;
  }
}

/** An error's message on one line. */
export function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, "; ");
}
