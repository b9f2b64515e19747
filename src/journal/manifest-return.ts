import type { Cause, JournalEntry } from "./entry.ts";

/**
 * The cause when a pod that had ended restarted under the same UID because its manifest was removed and added again.
 * Undefined otherwise, or when a container has exited by itself since.
 * @param entries of one UID, by sequence number
 */
export function manifestReturn(entries: readonly JournalEntry[]): Cause | undefined {
  const finished = entries.findLastIndex(({ what }) => what === "PodFinished");
  if (entries.slice(finished + 1).some(({ what }) => what === "ContainerDied")) return undefined;
  const removed = entries.slice(0, Math.max(finished, 0)).findLastIndex(({ what }) => what === "PodRemoved");
  if (removed === -1) return undefined;
  const again = entries.slice(removed + 1).findLast(({ what }) => what === "PodAdded");
  if (typeof again?.data?.["place"] !== "string") return undefined;
  // The entry names the file.
  return { code: "ManifestReturned", message: "its manifest was removed and added again", entry: again.seq };
}
