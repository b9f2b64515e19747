import type { Mutant } from "../sim-mutant-list.ts";

/** In what a kubelet does for its machine: shutdowns, iptables chains, limits of cgroups. */
export const nodeMutants: readonly Mutant[] = [
  {
    name: "shutdown-starts-with-high-priority",
    file: "src/shutdown/shutdown-manager.ts",
    from: "!assigned.has(pod.metadata.uid) && groupOf(this.#periods, pod) <= index,",
    to: "!assigned.has(pod.metadata.uid) && groupOf(this.#periods, pod) >= index,",
  },
  {
    name: "shutdown-takes-new-pods",
    file: "src/shutdown/shutdown-manager.ts",
    from: "(this.#shutdown === undefined ? undefined : refusal)",
    to: "(this.#shutdown === undefined || this.#shutdown !== undefined ? undefined : refusal)",
  },
  {
    name: "shutdown-holds-the-lock",
    file: "src/shutdown/shutdown-manager.ts",
    from: 'log.info("all pods have ended; the node may shut down");\n    this.#release();',
    to: 'log.info("all pods have ended; the node may shut down");',
  },
  {
    name: "shutdown-verdict-not-kept",
    file: "src/shutdown/ending.ts",
    from: "lasts: true,",
    to: "lasts: false,",
  },
  {
    name: "shutdown-gives-pods-all-their-grace",
    lives: "machine",
    file: "src/shutdown/periods.ts",
    from: "return Math.min(gracePeriodSeconds(pod), graceSeconds);",
    to: "return Math.max(gracePeriodSeconds(pod), graceSeconds - graceSeconds);",
  },
  {
    name: "shutdown-forgotten-by-next-life",
    lives: "machine",
    file: "src/shutdown/shutdown-manager.ts",
    from: "if (await session.isPreparingForShutdown(limit.signal)) this.#announced();",
    to: "await session.isPreparingForShutdown(limit.signal);",
  },
  {
    name: "chains-not-restored",
    file: "src/firewall/utility-chains.ts",
    from: "wereMade && (await iptables.has(canary, signal));",
    to: "wereMade;",
  },
  {
    name: "chains-looked-at-seldom",
    file: "src/firewall/utility-chains.ts",
    from: "const periodMs = 60_000;",
    to: "const periodMs = 600_000;",
  },
  {
    name: "limit-of-pods-not-tried-again",
    file: "src/resources/qos-cgroups.ts",
    from: "if (this.#isRefused) await this.#enforce();",
    to: "",
  },
  {
    name: "reserved-cgroup-without-processes",
    file: "src/node-setup/reserved-cgroups.ts",
    from: "...(pidsLimit !== undefined && { pidsLimit }),",
    to: "",
  },
];
