import { lifeStarted } from "../../journal/entry.ts";
import { dataText, forgetPod, whereOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * How a container ended stays said when the next instance runs, also when the runtime has forgotten the earlier one. What
 * a life before this one said counts only where there is an API server, and is not asked for.
 */
export const lastStates: RuleMaker = ({ node }, broken): Rule => {
  /** Containers of which this life has said that they had ended, by `uid/name`. */
  const ended = new Set<string>();

  return {
    reborn: (uid) => forgetPod(uid, ended),
    tampered: (uid) => forgetPod(uid, ended),
    entry: (entry) => {
      if (entry.what === lifeStarted) ended.clear();
      if (entry.what === "PodFinished") forgetPod(entry.pod?.uid ?? "", ended);
      if (entry.what !== "ContainerStateChanged" || dataText(entry, "state") !== "terminated") return;
      ended.add(whereOf(entry));
    },
    atRest: () => {
      for (const { view, status } of node.pods()) {
        for (const { name, state, lastState } of status?.containerStatuses ?? []) {
          const where = `${view.ref.uid}/${name}`;
          if (state.running === undefined || lastState.terminated !== undefined || !ended.has(where)) continue;
          broken("the last end stays said", `${where} runs again, and its status does not say how it ended before`);
        }
      }
    },
  };
};
