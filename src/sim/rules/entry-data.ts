import type { SimEntry } from "../life/node.ts";

/** What an entry's data holds under a name, as text; empty when that is no text and no number. */
export function dataText({ data }: SimEntry, name: string): string {
  const value = data?.[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** The runtime's id of the container that an entry is about; empty when it names none. */
export function idOf(entry: SimEntry): string {
  return (dataText(entry, "id") || dataText(entry, "containerID")).replace(/^.*:\/\//, "");
}

/** `uid/name` of the container that an entry is about. */
export function whereOf({ pod, container }: SimEntry): string {
  return `${pod?.uid}/${container}`;
}

/** What a rule keeps, by names that begin with `uid/`. */
interface Kept {
  keys(): Iterable<string>;
  delete(key: string): boolean;
}

/** Forgets all that is kept of the pod's containers. */
export function forgetPod(uid: string, ...kept: readonly Kept[]): void {
  for (const each of kept) for (const key of each.keys()) if (key.startsWith(`${uid}/`)) each.delete(key);
}
