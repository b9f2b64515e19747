import { isStaticPod } from "../../api/pod-kind.ts";
import type { Pod } from "../../api/pod.ts";
import { type Cause, lifeStarted } from "../../journal/entry.ts";
import type { CauseCode, EntryName } from "../../journal/vocabulary.ts";
import { tellsRejection } from "../../pods/rejection.ts";
import type { SimSandbox } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** More than recording state on the disk takes. */
const writtenMs = 60_000;
const beginnings: ReadonlySet<EntryName> = new Set(["RunPodSandbox", "CreateContainer", "StartContainer"]);

/** Causes of an end that is permanent while the pod is desired, across restarts of podwright. */
const lasting: ReadonlySet<CauseCode> = new Set([
  "Preempting",
  "Evicted",
  "Terminated",
  "DeadlineExceeded",
  "PodCompleted",
  "InitContainerFailed",
]);

/**
 * Not so a rejection, as of remains that are left after a restart of the machine: the next run of podwright judges again.
 * A static pod that stops for a shutdown which is cancelled meanwhile runs again.
 */
function lasts(pod: Pod | undefined, cause: Cause | undefined, isShutdownCancelled: boolean): boolean {
  if (cause === undefined || !lasting.has(cause.code) || tellsRejection(cause.message)) return false;
  return !(cause.code === "Terminated" && isShutdownCancelled && isStatic(pod));
}

function isStatic(pod: Pod | undefined): boolean {
  return pod !== undefined && isStaticPod(pod);
}

/**
 * A pod is over when no operation that starts something is in progress. It stays over, unless the disk failed to store
 * or return its record, and has no cgroup. Once podwright reports that all of it is removed, nothing of it exists or
 * appears.
 */
export const finished: RuleMaker = ({ world, node, clock, pods, unwanted }, broken): Rule => {
  let { boots } = node.power;
  const gone = new Set<string>();
  /** Pending operations of this run, by the entry of their request. */
  const asked = new Map<number, { readonly uid: string; readonly what: string }>();
  /**
   * Desired pods that have ended for good, since when, in simulated ms, and in which run. One that never started may be
   * over before that is recorded.
   */
  const over = new Map<string, { readonly sinceMs: number; readonly life: number }>();
  let isShutdownCancelled = false;
  const sandboxOf = (uid: string): SimSandbox | undefined =>
    [...world.sandboxes.values()].find(({ config }) => config.metadata?.uid === uid);

  function begins(uid: string, what: string): void {
    const { sinceMs, life } = over.get(uid) ?? {};
    if (sinceMs === undefined) return;
    if (node.diskFaultMs < sinceMs - writtenMs) broken("ended pods stay ended", `${what} of ${uid}, which had ended`);
    // Its end was not recorded for this run: it runs again.
    else if (life !== node.lives) over.delete(uid);
  }

  return {
    reborn: (uid) => void over.delete(uid),
    disagreements: () => {
      const paths = [...node.cgroups.applied.keys()];
      const kept = [...over.keys()].filter((uid) => paths.some((path) => path.endsWith(`/pod${uid}`)));
      return kept.map((uid) => `${uid} has ended, and its cgroup is there`);
    },
    change: ({ type, podUid: uid }) => {
      if (type === "sandboxStarted" && gone.has(uid) && node.callsAreTimely) {
        broken("removed pods stay removed", `${uid} got a sandbox after everything of it was removed`);
      }
    },
    entry: ({ kind, what, pod, seq, of = 0, cause }) => {
      if (what === lifeStarted) for (const known of [gone, asked]) known.clear();
      // The machine has restarted, or its shutdown was cancelled: static pods run again, whatever the shutdown did to
      // them.
      if (node.power.boots !== boots || what === "ShutdownCancelled") {
        boots = node.power.boots;
        for (const uid of over.keys()) if (isStatic(pods.get(uid))) over.delete(uid);
      }
      if (what === "Shutdown" || what === "ShutdownCancelled") isShutdownCancelled = what === "ShutdownCancelled";
      asked.delete(of);
      if (pod === undefined) return;
      if (kind === "action" && beginnings.has(what)) {
        asked.set(seq, { uid: pod.uid, what });
        begins(pod.uid, what);
      }
      const early = what === "PodTerminated" && [...asked.values()].find(({ uid }) => uid === pod.uid);
      if (unwanted.has(pod.uid)) over.delete(pod.uid);
      else if (what === "PodTerminated" && lasts(pods.get(pod.uid), cause, isShutdownCancelled) && sandboxOf(pod.uid)) {
        over.set(pod.uid, { sinceMs: clock.nowMs, life: node.lives });
      }
      if (early) broken("ended pods have stopped completely", `${early.what} of ${pod.uid} is still on its way`);
      // It is worked on again: desired once more, or found in the runtime.
      if (kind === "action") gone.delete(pod.uid);
      if (what !== "PodFinished") return;
      gone.add(pod.uid);
      const left = sandboxOf(pod.uid);
      if (left !== undefined && node.callsAreTimely) {
        broken("removed pods stay removed", `${pod.uid} is said to be removed, and ${left.id} is still there`);
      }
    },
  };
};
