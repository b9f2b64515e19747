import { mayRun, nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Two pods with one full name never run at the same time. */
export const names: RuleMaker = ({ world }, broken): Rule => ({
  change: ({ type, podUid: uid, container }) => {
    if (type !== "started" || container === undefined) return;
    const rival = [...world.containers.values()].find((other) => {
      return mayRun(other) && uidOf(other) !== uid && fullName(other) === fullName(container);
    });
    if (rival === undefined) return;
    broken("one pod per name", `${uid}/${nameOf(container)} started while ${uidOf(rival)}/${nameOf(rival)} ran`);
  },
});

function uidOf({ config }: SimContainer): string | undefined {
  return config.labels["io.kubernetes.pod.uid"];
}

function fullName({ config: { labels } }: SimContainer): string {
  return `${labels["io.kubernetes.pod.namespace"]}/${labels["io.kubernetes.pod.name"]}`;
}
