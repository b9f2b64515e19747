import { claimDirectories } from "../life/sim-claims.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const namespace = `${claimDirectories}/default`;
const marker = `${namespace}/data/written-by-a-pod`;

/** Data that pods write to a claim is never lost, and an ephemeral volume's claim is removed with its pod. */
export const claims: RuleMaker = ({ node, pods }): Rule => {
  let isWritten = false;

  return {
    change: ({ type, podUid: uid, container }) => {
      if (node.cluster !== undefined) return;
      const uses = pods.get(uid)?.spec.volumes?.some(({ persistentVolumeClaim: claim }) => claim !== undefined);
      if (type !== "started" || container === undefined || uses !== true || isWritten) return;
      isWritten = true;
      void node.files.write(marker, "x", 0o600);
    },
    disagreements: async () => {
      const problems: string[] = [];
      const { files, desired, cluster } = node;
      if (cluster !== undefined) return problems;
      if (isWritten && (await files.stat(marker)) === undefined) problems.push("what a pod wrote to its claim is lost");
      const owners = new Set([...desired.values()].map(({ metadata: { name } }) => `${name}-scratch`));
      for (const { name } of await files.list(namespace)) {
        if (name !== "data" && !owners.has(name)) problems.push(`claim ${name} is still there without its pod`);
      }
      return problems;
    },
  };
};
