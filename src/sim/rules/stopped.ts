import { idOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** When podwright says that all of a pod has stopped, no container runs of which it was told that it does. */
export const stopped: RuleMaker = ({ world }, broken): Rule => {
  /** Containers that podwright has asked to start, by the entry that says so. */
  const asked = new Map<number, string>();
  /** Containers that it was told of to run. Others may come to that late. */
  const started = new Set<string>();

  function judge(uid: string): void {
    const running = [...started].find((id) => {
      const { config, state } = world.containers.get(id) ?? {};
      return state === "running" && config?.labels["io.kubernetes.pod.uid"] === uid;
    });
    if (running !== undefined) broken("what is over has come to its end", `container ${running} of ${uid} still runs`);
  }

  return {
    entry: (entry) => {
      const { kind, what, pod, seq, of = 0, result } = entry;
      if (what === "PodTerminated") judge(pod?.uid ?? "");
      if (what !== "StartContainer") return;
      if (kind === "action") asked.set(seq, idOf(entry));
      if (result === "done") started.add(asked.get(of) ?? "");
    },
  };
};
