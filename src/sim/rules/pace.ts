import type { SimEntry } from "../life/node.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Operations on a container or a pod that are counted. */
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
/** Random lives reach seven, with every back-off lost to kills of podwright. */
const mostInAMinute = 25;
/** A change writes the pod's cgroup for memory and CPU, one before its containers and one after. */
const mostForAChange = 4;

/** Nothing is repeated in a tight loop: failures are retried with growing delays. */
export const pace: RuleMaker = (scene, broken): Rule => {
  /** Simulated ms of the operations of the last minute, by `what uid/name`. */
  const latest = new Map<string, number[]>();
  /** Simulated ms of the changes of the last minute, by UID. */
  const changes = new Map<string, number[]>();
  const announced = new Set<string>();
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
      if (count <= mostInAMinute + wishes * mostForAChange || announced.has(key)) return;
      announced.add(key);
      broken("no operation loops", `${key}: ${count} times within a minute`);
    },
  };
};
