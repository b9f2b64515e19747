import { mayRun, nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** A call in progress at the time of a change may still be executed. */
const callMs = 500;

/** What runs, and how many of it (design invariants 1 and 4). */
export const containers: RuleMaker = ({ clock, world, node, pods, unwanted }, broken): Rule => {
  const podOf = ({ sandboxId }: SimContainer): string | undefined =>
    world.sandboxes.get(sandboxId)?.config.metadata?.uid;

  function started(container: SimContainer, uid: string): void {
    const name = nameOf(container);
    if (!pods.has(uid)) return broken("only desired pods run", `${name} of unknown pod ${uid} started`);
    const twin = [...world.containers.values()].find(
      (other) => other !== container && mayRun(other) && nameOf(other) === name && podOf(other) === uid,
    );
    if (twin !== undefined) broken("one instance of a container", `${uid}/${name} runs twice`);
    const since = unwanted.get(uid)?.sinceMs;
    if (since !== undefined && clock.nowMs > since + callMs * slowness()) {
      broken("nothing starts in a pod that ends", `${uid}/${name} started`);
    }
  }

  /** Slower calls take effect later. */
  const slowness = (): number => node.slowness;

  return {
    change: ({ type, podUid: uid, container, sandbox }) => {
      if (type === "sandboxRemoved" && sandbox?.released === false) {
        broken("stopped before it is removed", `sandbox ${sandbox.id} of ${uid} was never told to stop`);
      }
      if (type === "started" && container !== undefined) started(container, uid);
      if (type === "sandboxStarted") {
        const running = [...world.containers.values()].filter((other) => mayRun(other) && podOf(other) === uid);
        if (running.length === 0) return;
        broken("one sandbox", `${uid} got a new sandbox while ${running.map(nameOf).join(", ")} ran`);
      }
    },
  };
};
