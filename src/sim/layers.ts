import type { LayersLeft } from "../eviction/pod-usage.ts";
import type { StarvedResource } from "../eviction/thresholds.ts";
import type { SimClock } from "./clock.ts";
import { SimRandom } from "./random.ts";
import type { RuntimeWorld } from "./runtime-world.ts";
import type { WorldChange } from "./world-model.ts";

/** The longest that the runtime takes to free a removed container's layer. */
const longestFreeMs = 8000;
/** Of layers, those whose place podwright knows. */
const knownPart = 0.7;

const resources = ["ephemeral-storage", "inodes"] as const satisfies readonly StarvedResource[];

interface Layers {
  readonly amounts: ReadonlyMap<StarvedResource, number>;
  /** When they will be free, simulated ms; undefined: a container still has them. */
  freedMs: number | undefined;
}

/**
 * What dead containers have left in their writable layers: the runtime frees it some seconds after a pod's last one was
 * removed.
 */
export class SimLayers {
  readonly #clock: SimClock;
  readonly #world: Pick<RuntimeWorld, "containers">;
  /** Of pods that do not run, by UID. */
  readonly #left = new Map<string, Layers>();
  /** The pods of removed containers. */
  readonly #removed = new Map<string, string>();

  /** @param written what a pod has in its layers, or had when it last ran */
  constructor(
    clock: SimClock,
    world: Pick<RuntimeWorld, "containers" | "onChange">,
    written: (uid: string, resource: StarvedResource) => number,
  ) {
    this.#clock = clock;
    this.#world = world;
    world.onChange((change) => this.#changed(change, written));
  }

  /** What a pod that does not run still takes. */
  heldBy(uid: string, resource: StarvedResource): number {
    const layers = this.#left.get(uid);
    if (layers === undefined || (layers.freedMs ?? Infinity) <= this.#clock.nowMs) return 0;
    return layers.amounts.get(resource) ?? 0;
  }

  /** The same of all pods. */
  held(resource: StarvedResource): number {
    return [...this.#left.keys()].reduce((sum, uid) => sum + this.heldBy(uid, resource), 0);
  }

  left(containers: readonly string[]): LayersLeft {
    const isKnown = (id: string): boolean => this.#removed.has(id) && SimRandom.named(1, id).chance(knownPart);
    const known = containers.filter(isKnown);
    const there = known.filter((id) => {
      const uid = this.#removed.get(id) ?? "";
      return resources.some((resource) => this.heldBy(uid, resource) > 0);
    });
    return { there, unknown: containers.filter((id) => !known.includes(id)) };
  }

  calm(): void {
    this.#left.clear();
  }

  #changed(
    { type, podUid, container }: WorldChange,
    written: (uid: string, resource: StarvedResource) => number,
  ): void {
    if (type === "started") this.#left.delete(podUid);
    if (type !== "exited" && type !== "removed") return;
    const own = [...this.#world.containers.values()].filter(
      ({ config }) => config.labels["io.kubernetes.pod.uid"] === podUid,
    );
    if (type === "exited") {
      if (own.some(({ state }) => state === "running")) return;
      const amounts = new Map(resources.map((resource) => [resource, written(podUid, resource)] as const));
      this.#left.set(podUid, { amounts, freedMs: undefined });
    } else if (container !== undefined) {
      this.#removed.set(container.id, podUid);
      const layers = this.#left.get(podUid);
      if (layers === undefined || own.some(({ id }) => id !== container.id)) return;
      layers.freedMs ??= this.#clock.nowMs + SimRandom.named(0, container.id).uniform() * longestFreeMs;
    }
  }
}
