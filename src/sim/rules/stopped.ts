import { idOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** When podwright reports that a pod has stopped, no container runs that it knew to run. */
export const stopped: RuleMaker = ({ world }, broken): Rule => {
  /** Containers that podwright is starting, by the action's entry. */
  const asked = new Map<number, string>();
  /** Containers known to run. Others may start late. */
  const started = new Set<string>();

  function judge(uid: string): void {
    const running = [...started].find((id) => {
      const { config, state } = world.containers.get(id) ?? {};
      return state === "running" && config?.labels["io.kubernetes.pod.uid"] === uid;
    });
    if (running !== undefined) {
      broken("ended pods have stopped completely", `container ${running} of ${uid} still runs`);
    }
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
