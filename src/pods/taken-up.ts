import type { PodUid } from "../base/ids.ts";
import type { PodCache } from "../pleg/pod-cache.ts";

/**
 * What the runtime had when podwright started, for one line; undefined: nothing. Pure.
 * @param wanted whether a source wants the pod
 */
export function takenUp(cache: Pick<PodCache, "uids" | "get">, wanted: (uid: PodUid) => boolean): string | undefined {
  const found = cache.uids().flatMap((uid) => {
    const { sandboxes, containers } = cache.get(uid).status;
    if (sandboxes.length === 0 && containers.length === 0) return [];
    return [{ uid, running: containers.filter(({ state }) => state === "running").length }];
  });
  const taken = found.filter(({ uid }) => wanted(uid));
  const others = found.length - taken.length;
  if (found.length === 0) return undefined;
  const containers = taken.reduce((sum, { running }) => sum + running, 0);
  const left = others === 0 ? "" : `; ${counted(others, "pod")} that nobody wants`;
  return `found ${counted(taken.length, "pod")} with ${counted(containers, "running container")}, which run on${left}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
