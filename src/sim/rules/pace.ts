import type { SimEntry } from "../life/node.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** What the runtime is asked to do for a container or a pod. */
const paced: ReadonlySet<string> = new Set([
  "RunPodSandbox",
  "StopPodSandbox",
  "PullImage",
  "CreateContainer",
  "StartContainer",
  "StopContainer",
  "RemoveContainer",
  "UpdateContainerResources",
  "UpdatePodCgroup",
]);
const minuteMs = 60_000;
/** With every back-off lost to kills of podwright, drawn lives come to seven. */
const mostInAMinute = 25;

/** Nothing is done over and over: whatever fails or ends at once is tried again later and later. */
export const pace: RuleMaker = (_scene, broken): Rule => {
  /** Simulated ms of the latest ones of each kind, by `what uid/name`. */
  const latest = new Map<string, number[]>();
  const told = new Set<string>();

  return {
    entry: ({ kind, what, pod, container, atMs }: SimEntry) => {
      if (kind !== "action" || !paced.has(what)) return;
      const key = `${what} of ${pod?.uid ?? ""}/${container ?? ""}`;
      const times = latest.get(key) ?? [];
      latest.set(key, times);
      times.push(atMs);
      const first = times.length > mostInAMinute ? (times.shift() ?? 0) : Number.NEGATIVE_INFINITY;
      if (atMs - first > minuteMs || told.has(key)) return;
      told.add(key);
      broken("nothing is done over and over", `${key}: ${mostInAMinute + 1} times within a minute`);
    },
  };
};
