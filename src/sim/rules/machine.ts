import { isDeepStrictEqual } from "node:util";
import { lifeStarted } from "../../journal/entry.ts";
import { canaries, type Family, wantedChains, wantedRules } from "../../firewall/chains.ts";
import { simReserved } from "../life/sim-node-rooms.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Looks at the tables are a minute apart. */
const wholeWithinMs = 90_000;
const families: readonly (readonly [Family, string])[] = [
  [4, "iptables"],
  [6, "ip6tables"],
];

/**
 * The kubelet maintains its machine: its iptables chains are complete a minute and a half after they were damaged, and
 * the limits of all pods and of reserved cgroups hold once the kernel accepts them.
 */
export const machine: RuleMaker = ({ node, clock }, broken): Rule => {
  let hasRooms = false;
  let startedMs = 0;

  function missingChain(): string | undefined {
    for (const [family, program] of families) {
      for (const { table, chain } of [...wantedChains(family), ...canaries]) {
        if (node.firewall.rules(program, table, chain) === undefined) return `${program} ${table} ${chain}`;
      }
      for (const { table, chain, rule } of wantedRules(family)) {
        if (node.firewall.rules(program, table, chain)?.has(rule.join(" ")) !== true) return `a rule of ${chain}`;
      }
    }
    return undefined;
  }

  function limits(): string[] {
    const system = node.cgroups.applied.get(simReserved.cgroup);
    const isHeld = isDeepStrictEqual({ ...system }, simReserved.limits);
    const all = node.cgroups.applied.get("/kubepods");
    const isBound = all?.memoryLimitBytes === Number(node.config.cgroups.memoryBytes);
    return [
      ...(isHeld ? [] : [`the reserved cgroup has ${JSON.stringify(system)}`]),
      ...(isBound ? [] : [`all pods together may have ${all?.memoryLimitBytes} bytes`]),
    ];
  }

  return {
    entry: ({ what, atMs }) => {
      if (what === lifeStarted) startedMs = atMs;
      if (what === "NodeAllocatableEnforced") hasRooms ||= node.cgroups.applied.has(simReserved.cgroup);
      const dueMs = Math.max(startedMs, node.firewall.disturbedMs) + wholeWithinMs;
      if (!hasRooms || !node.isUp || clock.nowMs < dueMs) return;
      const missing = missingChain();
      if (missing !== undefined) broken("chains are restored within 90 s", `${missing} is missing`);
    },
    disagreements: () => (hasRooms ? limits() : []),
  };
};
