import type { SimEntry } from "../life/node.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** What the runtime is asked to do for a container or a pod. */
const paced: ReadonlySet<EntryName> = new Set([
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
/** A pod that is to be different has its cgroup written for memory and for CPU, the one before its containers, one after. */
const mostForAChange = 4;

/** Nothing is done over and over: whatever fails or ends at once is tried again later and later. */
export const pace: RuleMaker = (scene, broken): Rule => {
  /** Simulated ms of those of the last minute, by `what uid/name`. */
  const latest = new Map<string, number[]>();
  /** Simulated ms of the last minute's changes, by UID. */
  const changes = new Map<string, number[]>();
  const told = new Set<string>();
  const note = (times: Map<string, number[]>, key: string, atMs: number): number => {
    const recent = (times.get(key) ?? []).filter((time) => time >= atMs - minuteMs);
    times.set(key, recent);
    return recent.push(atMs);
  };

  return {
    changed: (before, after) => {
      if (before !== undefined) note(changes, after.metadata.uid, scene.clock.nowMs);
    },
    entry: ({ kind, what, pod, container, atMs }: SimEntry) => {
      if (kind !== "action" || !paced.has(what)) return;
      const uid = pod?.uid ?? "";
      const key = `${what} of ${uid}/${container ?? ""}`;
      const count = note(latest, key, atMs);
      const wishes = (changes.get(uid) ?? []).filter((time) => time >= atMs - minuteMs).length;
      if (count <= mostInAMinute + wishes * mostForAChange || told.has(key)) return;
      told.add(key);
      broken("nothing is done over and over", `${key}: ${count} times within a minute`);
    },
  };
};
