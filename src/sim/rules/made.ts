import { lifeStarted } from "../../journal/entry.ts";
import { isRejection } from "../../journal/vocabulary.ts";
import type { SimEntry } from "../life/node.ts";
import { attemptOf, nameOf, type SimContainer, type SimSandbox } from "../world-model.ts";
import { dataText } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * Nothing is created again while an instance that podwright knows of exists; no sandbox is created before a dead one is
 * released; and attempts increase by one.
 */
export const made: RuleMaker = ({ world }, broken): Rule => {
  /** Sandboxes and containers whose creation was confirmed to podwright in its current run. */
  const known = new Set<string>();
  /** The attempt of each pod's last sandbox, by UID. */
  const attempts = new Map<string, number>();
  /** What was left of them is garbage: a later run that admits one begins it anew. */
  const rejected = new Set<string>();
  const sandboxesOf = (uid = ""): SimSandbox[] =>
    [...world.sandboxes.values()].filter(({ config }) => config.metadata?.uid === uid);
  const instancesOf = ({ pod, container }: SimEntry): SimContainer[] =>
    [...world.containers.values()].filter((one) => {
      return nameOf(one) === container && world.sandboxes.get(one.sandboxId)?.config.metadata?.uid === pod?.uid;
    });

  function runsSandbox(uid: string): void {
    const all = sandboxesOf(uid);
    const held = all.find(({ ready, released }) => !ready && !released);
    if (held !== undefined) broken("a dead sandbox releases its network", `${held.id} of ${uid} holds it`);
    const twin = all.find(({ id, ready }) => ready && known.has(id));
    if (twin !== undefined) broken("one sandbox", `another one is made for ${uid}, which has ${twin.id}`);
  }

  function createsContainer(entry: SimEntry): void {
    const twin = instancesOf(entry).find((one) => {
      return known.has(one.id) && String(attemptOf(one)) === dataText(entry, "attempt");
    });
    if (twin === undefined) return;
    broken("nothing is created twice", `${entry.pod?.uid}/${entry.container}, which is there as ${twin.id}`);
  }

  return {
    reborn: (uid) => {
      attempts.delete(uid);
      rejected.delete(uid);
    },
    change: ({ type, podUid: uid, sandbox }) => {
      if (type === "sandboxRemoved" && rejected.has(uid) && sandboxesOf(uid).length === 0) attempts.delete(uid);
      if (type !== "sandboxStarted" || sandbox === undefined) return;
      const [before = -1, now] = [attempts.get(uid), attemptOf(sandbox)];
      attempts.set(uid, now);
      if (now <= before) broken("sandboxes are counted", `${uid} got sandbox ${now} after ${before}`);
    },
    entry: (entry) => {
      const { kind, what, pod, result } = entry;
      if (what === lifeStarted) known.clear();
      if (pod !== undefined && isRejection(what)) rejected.add(pod.uid);
      if (what !== "RunPodSandbox" && what !== "CreateContainer") return;
      if (kind === "action" && what === "RunPodSandbox") runsSandbox(pod?.uid ?? "");
      if (kind === "action" && what === "CreateContainer") createsContainer(entry);
      if (result !== "done") return;
      const ready = sandboxesOf(pod?.uid).filter((one) => one.ready);
      for (const { id } of what === "RunPodSandbox" ? ready : instancesOf(entry)) known.add(id);
    },
  };
};
