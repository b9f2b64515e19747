import { lifeStarted } from "../../journal/entry.ts";
import { dataText, forgetPod, whereOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * A container's last state stays reported when the next instance runs, even after the runtime has lost the earlier
 * instance. Reports of earlier runs count only with an API server, and are not checked.
 */
export const lastStates: RuleMaker = ({ node }, broken): Rule => {
  /** Containers whose end this run has reported, by `uid/name`. */
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
          broken(
            "the last state stays reported",
            `${where} runs again, and its status does not say how it ended before`,
          );
        }
      }
    },
  };
};
