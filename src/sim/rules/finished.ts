import { lifeStarted } from "../../journal/entry.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Once podwright says that everything of a pod is removed, nothing of it is there, and nothing comes. */
export const finished: RuleMaker = ({ world, node }, broken): Rule => {
  const gone = new Set<string>();
  return {
    change: ({ type, podUid: uid }) => {
      if (type === "sandboxStarted" && gone.has(uid) && node.callsAreTimely) {
        broken("what is removed stays away", `${uid} got a sandbox after everything of it was removed`);
      }
    },
    entry: ({ kind, what, pod }) => {
      if (what === lifeStarted) gone.clear();
      if (pod === undefined) return;
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
