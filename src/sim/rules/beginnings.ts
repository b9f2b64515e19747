import type { Pod } from "../../api/pod.ts";
import { mayRestartAll } from "../../status/restarting.ts";
import type { WorldChange } from "../world-model.ts";
import type { Scene } from "./rule.ts";

/** How often each pod with init containers has been reinitialized: it may become Pending again as often. */
export class Beginnings {
  readonly #scene: Pick<Scene, "pods" | "world">;
  /** Reinitializations not yet reported, by UID. */
  readonly #untold = new Set<string>();

  constructor(scene: Pick<Scene, "pods" | "world">) {
    this.#scene = scene;
  }

  change({ type, podUid: uid, container, sandbox }: WorldChange): void {
    const pod = this.#scene.pods.get(uid);
    if (pod === undefined || !hasInit(pod)) return;
    // A pod that restarts all containers keeps its sandbox.
    const startsOver = type === "created" && container !== undefined && mayRestartAll(pod);
    if (startsOver || (type === "sandboxStarted" && sandbox !== undefined)) this.#untold.add(uid);
  }

  /** A Running pod is reported as Pending: true when that is allowed, once per reinitialization. */
  take(uid: string): boolean {
    return this.#untold.delete(uid);
  }

  /**
   * A pod with init containers cannot be Running before one of its regular containers was created in its newest
   * sandbox.
   */
  isInitialised(uid: string): boolean {
    const { pods, world } = this.#scene;
    const pod = pods.get(uid);
    if (pod === undefined || !hasInit(pod) || mayRestartAll(pod)) return true;
    const sandboxes = [...world.sandboxes.values()].filter(({ config }) => config.metadata?.uid === uid);
    const newest = sandboxes.at(-1);
    // A lost sandbox is no reinitialization until there is another one.
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
