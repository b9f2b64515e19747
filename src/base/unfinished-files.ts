import type { Files } from "../ports/files.ts";

/** The name of a file that is being written, before it takes the place of another in one step. */
export function unfinishedName(unique: string): string {
  // With a dot, because readers of manifest directories ignore such names.
  return `.${unique}.tmp`;
}

/** Whether a file has such a name. */
export function isUnfinishedName(name: string): boolean {
  return /^\.[0-9a-f]+\.tmp$/.test(name);
}

/** Removes files whose write was interrupted by a kill. Only for directories without other writers. */
export async function removeUnfinished(files: Pick<Files, "list" | "remove">, directory: string): Promise<void> {
  for (const { name, type } of await files.list(directory)) {
    if (type === "file" && isUnfinishedName(name)) await files.remove(`${directory}/${name}`);
  }
}
