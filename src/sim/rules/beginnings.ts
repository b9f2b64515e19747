import type { Pod } from "../../api/pod.ts";
import { mayRestartAll } from "../../status/restarting.ts";
import type { WorldChange } from "../world-model.ts";
import type { Scene } from "./rule.ts";

/** How often each pod with init containers has begun anew: as often it may be Pending again. */
export class Beginnings {
  readonly #scene: Pick<Scene, "pods" | "world">;
  /** Beginnings that nobody has told of yet, by UID. */
  readonly #untold = new Set<string>();

  constructor(scene: Pick<Scene, "pods" | "world">) {
    this.#scene = scene;
  }

  change({ type, podUid: uid, container, sandbox }: WorldChange): void {
    const pod = this.#scene.pods.get(uid);
    if (pod === undefined || !hasInit(pod)) return;
    // One that starts over does so in the sandbox that it has.
    const startsOver = type === "created" && container !== undefined && mayRestartAll(pod);
    if (startsOver || (type === "sandboxStarted" && sandbox !== undefined)) this.#untold.add(uid);
  }

  /** A pod that was Running is said to be Pending: true when it may be, once for each beginning. */
  take(uid: string): boolean {
    return this.#untold.delete(uid);
  }

  /** A pod with init containers can't be Running before one of its regular containers was made in its newest sandbox. */
  isInitialised(uid: string): boolean {
    const { pods, world } = this.#scene;
    const pod = pods.get(uid);
    if (pod === undefined || !hasInit(pod) || mayRestartAll(pod)) return true;
    const sandboxes = [...world.sandboxes.values()].filter(({ config }) => config.metadata?.uid === uid);
    const newest = sandboxes.at(-1);
    // One that was lost is no beginning until there is another.
    if (newest?.ready !== true) return true;
    const regular = new Set(pod.spec.containers.map(({ name }) => name));
    return [...world.containers.values()].some(
      ({ sandboxId, config }) => sandboxId === newest.id && regular.has(config.metadata?.name ?? ""),
    );
  }
}

function hasInit({ spec }: Pod): boolean {
  return (spec.initContainers ?? []).length > 0;
}
