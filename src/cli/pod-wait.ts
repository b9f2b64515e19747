import type { PodRef } from "../journal/entry.ts";
import type { PodView } from "../server/local-api.ts";
import { hasEnded } from "../server/pod-words.ts";

export type WaitFor = "ready" | "running" | "none";

export interface WaitResult {
  /** failed: those that have not reached it never will. */
  readonly state: "reached" | "waiting" | "failed";
  /** The pods that have not reached it (view undefined: not listed). */
  readonly missing: readonly { readonly ref: PodRef; readonly view: PodView | undefined }[];
}

/** Whether the pods have reached the state of `--wait`. A succeeded pod has; a pod during a resize has not. */
export function waitResult(refs: readonly PodRef[], views: readonly PodView[], wait: WaitFor): WaitResult {
  const byUid = new Map(views.map((view) => [view.uid, view]));
  const all = refs.map((ref) => ({ ref, view: byUid.get(ref.uid) }));
  const missing = wait === "none" ? [] : all.filter(({ view }) => !isThere(view, wait));
  const failed = missing.every(({ view }) => view?.phase === "Failed");
  return { state: missing.length === 0 ? "reached" : failed ? "failed" : "waiting", missing };
}

function isThere(view: PodView | undefined, wait: WaitFor): boolean {
  if (view === undefined) return false;
  if (view.phase === "Succeeded") return true;
  if (view.resize?.state === "InProgress") return false;
  return wait === "running" ? view.phase === "Running" : view.ready && view.state === "syncing";
}

/** How the pods ended; undefined while one is running or may be restarted. */
export function runEnd(
  refs: readonly PodRef[],
  seen: ReadonlyMap<string, PodView>,
  views: readonly PodView[],
): RunEnd | undefined {
  const listed = new Map(views.map((view) => [view.uid, view]));
  let wellEnded = true;
  for (const ref of refs) {
    const view = listed.get(ref.uid);
    const last = view ?? seen.get(ref.uid);
    // Completely only once its sandbox is stopped too.
    const atWork = view !== undefined && !(hasEnded(view) && view.state === "terminated");
    if (last === undefined || atWork) return undefined;
    // Gone without having ended: another user stopped it.
    if (last.phase !== "Succeeded" && (view !== undefined || hasEnded(last))) wellEnded = false;
  }
  return wellEnded ? "well" : "badly";
}

export type RunEnd = "well" | "badly";
