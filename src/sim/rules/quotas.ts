import { isCriticalPod } from "../../api/pod-kind.ts";
import { isOverfull } from "../life/quota-steps.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * Project quotas are taken from nobody and given back, and a pod whose volume exceeds its limit is evicted: by its quota
 * if it has one, and otherwise by the files that have names.
 */
export const quotas: RuleMaker = (scene, broken): Rule => {
  const { node, world } = scene;

  async function overfull(): Promise<string[]> {
    const running = new Set(
      [...world.containers.values()]
        .filter(({ state }) => state === "running")
        .map(({ config }) => config.labels["io.kubernetes.pod.uid"] ?? ""),
    );
    const problems: string[] = [];
    for (const [uid, pod] of node.desired) {
      if (!running.has(uid) || isCriticalPod(pod) || !(await isOverfull(scene, pod, true))) continue;
      problems.push(`${uid} runs, although its volume exceeds its limit`);
    }
    return problems;
  }

  return {
    entry: () => {
      const { damage } = node.quotas;
      if (damage !== undefined) broken("projects of others are left alone", damage);
    },
    disagreements: async () => [
      ...(node.evictions === undefined ? [] : await overfull()),
      ...(await node.quotas.stale()).map((path) => `${path} is gone, and listed as a project's`),
    ],
  };
};
