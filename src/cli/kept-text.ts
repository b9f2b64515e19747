import { shortList } from "../base/short-list.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import { claimLabel } from "./claim-label.ts";

/** Objects that the text names at most. */
const named = 5;

/**
 * What `podwright run` says about objects that came without a pod. Pure.
 * @param list the command that lists claims and volumes
 */
export function keptText(objects: readonly StorageManifest[], list: string): string {
  const names = objects.map(({ kind, metadata: { name = "", namespace } }) => {
    if (kind !== "PersistentVolumeClaim") return `${kind} ${name}`;
    return `claim ${claimLabel({ namespace: namespace || "default", name })}`;
  });
  const kept = shortList(names, named, ", ");
  const isListed = objects.some(({ kind }) => kind === "PersistentVolumeClaim" || kind === "PersistentVolume");
  // Those that something needs then stay longer.
  return isListed
    ? `kept: ${kept}; '${list}' lists claims and volumes`
    : `kept at least until the last pod is stopped: ${kept}`;
}
