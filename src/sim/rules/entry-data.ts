import type { SimEntry } from "../life/node.ts";

/** A field of an entry's data as text; empty unless it is a string or number. */
export function dataText({ data }: SimEntry, name: string): string {
  const value = data?.[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** The runtime ID of an entry's container; empty without one. */
export function idOf(entry: SimEntry): string {
  return (dataText(entry, "id") || dataText(entry, "containerID")).replace(/^.*:\/\//, "");
}

/** `uid/name` of an entry's container. */
export function whereOf({ pod, container }: SimEntry): string {
  return `${pod?.uid}/${container}`;
}

/** A rule's memory, by keys that begin with `uid/`. */
interface Kept {
  keys(): Iterable<string>;
  delete(key: string): boolean;
}

/** Drops the pod's containers from memory. */
export function forgetPod(uid: string, ...kept: readonly Kept[]): void {
  for (const each of kept) for (const key of each.keys()) if (key.startsWith(`${uid}/`)) each.delete(key);
}
