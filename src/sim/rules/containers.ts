import type { SimEntry } from "../life/node.ts";
import { attemptOf, mayRun, nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** A call in progress at the time of a change may still be executed. */
const callMs = 500;

/** The container for whose start the pod could not be prepared; undefined: another observation. */
function unprepared({ what, cause }: SimEntry): string | undefined {
  const isPreparation = what === "FailedMakePodDataDirectories" || what === "FailedCreatePodContainer";
  return isPreparation ? /^container (\S+) has not been started yet$/u.exec(cause?.message ?? "")?.[1] : undefined;
}

/** What runs, and how many of it (design invariants 1 and 4). */
export const containers: RuleMaker = ({ clock, world, node, pods, unwanted }, broken): Rule => {
  /** `uid/name` of containers that podwright has tried to start. */
  const tried = new Set<string>();
  const podOf = ({ sandboxId }: SimContainer): string | undefined =>
    world.sandboxes.get(sandboxId)?.config.metadata?.uid;

  function started(container: SimContainer, uid: string): void {
    const name = nameOf(container);
    const pod = pods.get(uid);
    if (pod === undefined) return broken("only desired pods run", `${name} of unknown pod ${uid} started`);
    const twin = [...world.containers.values()].find(
      (other) => other !== container && mayRun(other) && nameOf(other) === name && podOf(other) === uid,
    );
    if (twin !== undefined) broken("one instance of a container", `${uid}/${name} runs twice`);
    const since = unwanted.get(uid)?.sinceMs;
    if (since !== undefined && clock.nowMs > since + callMs * slowness()) {
      broken("nothing starts in a pod that ends", `${uid}/${name} started`);
    }
    if (attemptOf(container) > 0) return;
    const names = pod.spec.containers.map((own) => own.name);
    for (const before of names.slice(0, Math.max(0, names.indexOf(name)))) {
      if (!tried.has(`${uid}/${before}`)) broken("spec order", `${uid}/${name} started before ${before} was tried`);
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
    entry: (entry) => {
      const name = entry.kind === "observation" ? unprepared(entry) : entry.container;
      if (entry.pod !== undefined && name !== undefined) tried.add(`${entry.pod.uid}/${name}`);
    },
  };
};
