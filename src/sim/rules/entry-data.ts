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
