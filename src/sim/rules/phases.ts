import { neverRestarts } from "../../api/restart-policy.ts";
import type { PodStatus } from "../../api/status.ts";
import { containerStatusUnknown } from "../../status/container-statuses.ts";
import { isTerminalPhase } from "../../status/phase.ts";
import { mayRun, type SimContainer } from "../world-model.ts";
import { dataText } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * A pod that is ending, and restarts nothing, has ended as soon as its status says so of its last container: a status
 * in between may be older than what an earlier run has reported. As upstream, a container that still runs holds the
 * phase: an ephemeral one, or one of which the runtime has lost track.
 */
export const phases: RuleMaker = ({ node, world }, broken): Rule => ({
  entry: (entry) => {
    if (entry.what !== "ContainerStateChanged" || dataText(entry, "state") !== "terminated") return;
    const known = node.pods().find(({ view }) => view.ref.uid === entry.pod?.uid);
    const { view, status } = known ?? {};
    if (view?.pod === undefined || view.state.kind === "syncing" || !neverRestarts(view.pod)) return;
    if (status === undefined || isTerminalPhase(status.phase) || !saysItEnded(status)) return;
    const isOwn = (config: SimContainer["config"]): boolean => config.labels["io.kubernetes.pod.uid"] === view.ref.uid;
    if ([...world.containers.values()].some((each) => isOwn(each.config) && mayRun(each))) return;
    broken("a pod ends with its last container", `all of ${view.ref.uid} has ended, and it is ${status.phase}`);
  },
});

/** Of a pod whose containers were all assumed killed, nothing is known to have run. */
function saysItEnded({ containerStatuses = [] }: PodStatus): boolean {
  const ends = containerStatuses.map(({ state }) => state.terminated);
  return ends.every((end) => end !== undefined) && ends.some((end) => end?.reason !== containerStatusUnknown);
}
