import type { ContainerState } from "../../api/status.ts";
import type { SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** A container's status has its own termination message. */
export const messages: RuleMaker = ({ node, pods }, broken): Rule => {
  /** Containers that ran and ended, by id. */
  const ended = new Map<string, SimContainer>();

  function judge(where: string, { terminated }: ContainerState): void {
    const truth = ended.get(terminated?.containerID?.replace(/^.*:\/\//, "") ?? "");
    // A disk error is reported in place of the message.
    if (truth === undefined || terminated?.message?.startsWith("Error") === true) return;
    const due = `ended with ${truth.exitCode}`;
    if (terminated?.message !== due) broken("messages are reported", `${where}: ${terminated?.message}, not ${due}`);
  }

  return {
    change: ({ type, container }) => {
      if (type !== "exited" || container === undefined || container.startedAt === 0n || container.wasLost) return;
      ended.set(container.id, container);
    },
    atRest: () => {
      for (const { view, status } of node.pods()) {
        if (!pods.has(view.ref.uid)) continue;
        const { containerStatuses = [], initContainerStatuses = [] } = status ?? {};
        for (const { name, state, lastState } of [...initContainerStatuses, ...containerStatuses]) {
          judge(`${view.ref.uid}/${name}`, state);
          judge(`${view.ref.uid}/${name}`, lastState);
        }
      }
    },
  };
};
