import type { PodUid } from "../base/ids.ts";
import type { PodCache } from "../pleg/pod-cache.ts";

/** What the runtime had when podwright started. */
export interface TakenUp {
  /** Pods that a source has. */
  readonly pods: number;
  /** Their running containers. */
  readonly containers: number;
  /** Pods that no source has. */
  readonly orphans: number;
}

/**
 * Counts what the runtime had when podwright started; undefined: nothing. Pure.
 * @param wanted whether a source has the pod
 */
export function takenUp(cache: Pick<PodCache, "uids" | "get">, wanted: (uid: PodUid) => boolean): TakenUp | undefined {
  const found = cache.uids().flatMap((uid) => {
    const { sandboxes, containers } = cache.get(uid).status;
    if (sandboxes.length === 0 && containers.length === 0) return [];
    return [{ uid, running: containers.filter(({ state }) => state === "running").length }];
  });
  if (found.length === 0) return undefined;
  const taken = found.filter(({ uid }) => wanted(uid));
  const containers = taken.reduce((sum, { running }) => sum + running, 0);
  return { pods: taken.length, containers, orphans: found.length - taken.length };
}

/** One line for the journal, e.g. `took over 2 pods with 3 running containers; 1 orphaned pod`. */
export function takenUpText({ pods, containers, orphans }: TakenUp): string {
  const left = orphans === 0 ? "" : `; ${counted(orphans, "orphaned pod")}`;
  return `took over ${counted(pods, "pod")} with ${counted(containers, "running container")}${left}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
