import { lifeStarted } from "../../journal/entry.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const beginnings: ReadonlySet<string> = new Set(["RunPodSandbox", "CreateContainer", "StartContainer"]);

/**
 * A pod is over when nothing is on its way any more that begins something of it. Once podwright says that everything of
 * it is removed, nothing of it is there, and nothing comes.
 */
export const finished: RuleMaker = ({ world, node }, broken): Rule => {
  const gone = new Set<string>();
  /** What this life has asked for and has no answer to, by the entry that says so. */
  const asked = new Map<number, { readonly uid: string; readonly what: string }>();
  return {
    change: ({ type, podUid: uid }) => {
      if (type === "sandboxStarted" && gone.has(uid) && node.callsAreTimely) {
        broken("what is removed stays away", `${uid} got a sandbox after everything of it was removed`);
      }
    },
    entry: ({ kind, what, pod, seq, of = 0 }) => {
      if (what === lifeStarted) for (const known of [gone, asked]) known.clear();
      asked.delete(of);
      if (pod === undefined) return;
      if (kind === "action" && beginnings.has(what)) asked.set(seq, { uid: pod.uid, what });
      const early = what === "PodTerminated" && [...asked.values()].find(({ uid }) => uid === pod.uid);
      if (early) broken("what is over has come to its end", `${early.what} of ${pod.uid} is still on its way`);
      // It is worked on again: wanted once more, or found in the runtime.
      if (kind === "action" || what === "PodSyncing") gone.delete(pod.uid);
      if (what !== "PodFinished") return;
      gone.add(pod.uid);
      const left = [...world.sandboxes.values()].find(({ config }) => config.metadata?.uid === pod.uid);
      if (left !== undefined && node.callsAreTimely) {
        broken("what is removed stays away", `${pod.uid} is said to be removed, and ${left.id} is still there`);
      }
    },
  };
};
