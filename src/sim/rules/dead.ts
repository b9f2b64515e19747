import { nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** More than noticing takes. */
const collectedWithinMs = 30_000;
/** The whole node is checked each minute. */
const nodeCollectedWithinMs = 100_000;

/**
 * In the end there are no more dead containers than configured, for each container and in total. The newest instance of
 * each always stays: it proves that the container ran.
 */
export const dead: RuleMaker = ({ clock, world, node }): Rule => {
  const exitedMs = new WeakMap<SimContainer, number>();
  /** Simulated ms from which each instance is the newest of its container. */
  const ranMs = new WeakMap<SimContainer, number>();

  /** Instances that have been dead and superseded for this long; and the newest, if dead for this long. */
  function oldOf(instances: readonly SimContainer[], withinMs: number): SimContainer[] {
    return instances.filter((each, index) => {
      const next = instances.slice(index + 1).find((later) => ranMs.has(later));
      const sinceMs = Math.max(exitedMs.get(each) ?? clock.nowMs, next === undefined ? 0 : (ranMs.get(next) ?? 0));
      return clock.nowMs - sinceMs > withinMs;
    });
  }

  function problemsOf(where: string, instances: readonly SimContainer[]): string[] {
    const { maxPerPodContainer } = node.config.garbage;
    const old = oldOf(instances, collectedWithinMs).length;
    const mayBe = Math.max(maxPerPodContainer, newestOf(instances)?.state === "exited" ? 1 : 0);
    if (maxPerPodContainer < 0 || old <= mayBe) return [];
    return [`${where} has ${old} dead instances, and ${mayBe} may be kept`];
  }

  function problemsOfNode(all: readonly (readonly SimContainer[])[]): string[] {
    const { maxContainers } = node.config.garbage;
    const old = all.flatMap((instances) => oldOf(instances, nodeCollectedWithinMs));
    const newest = new Set(all.map(newestOf));
    const mayGo = old.some((each) => !newest.has(each));
    if (maxContainers < 0 || !mayGo || old.length <= maxContainers) return [];
    return [`there are ${old.length} dead containers on the node, and ${maxContainers} may be kept`];
  }

  return {
    change: ({ type, container }) => {
      if (container === undefined || (type !== "started" && type !== "exited")) return;
      if (!ranMs.has(container)) ranMs.set(container, clock.nowMs);
      if (type === "exited") exitedMs.set(container, clock.nowMs);
    },
    disagreements: () => {
      const wanted = [...world.containers.values()].filter(({ config }) => node.desired.has(uidOf(config.labels)));
      const all = Map.groupBy(wanted, (each) => `${uidOf(each.config.labels)}/${nameOf(each)}`);
      return [
        ...[...all].flatMap(([where, instances]) => problemsOf(where, instances)),
        ...problemsOfNode([...all.values()]),
      ];
    },
  };
};

function uidOf(labels: Readonly<Record<string, string>>): string {
  return labels["io.kubernetes.pod.uid"] ?? "";
}

/** A container that has not started is no record of a run. */
function newestOf(instances: readonly SimContainer[]): SimContainer | undefined {
  return instances.findLast(({ state }) => state !== "created");
}
