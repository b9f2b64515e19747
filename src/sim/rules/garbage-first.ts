import { resourceOf, type Signal, signals } from "../../eviction/thresholds.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { dataText } from "./entry-data.ts";
import { imagesOf, wants } from "./image-users.ts";
import { type Break, recoveredMs, type Rule, type Scene } from "./rule.ts";

/** More than podwright takes to learn that nothing uses something any more. */
const unheardMs = 30_000;

/** Before a pod is evicted for a disk, unused images and dead containers of ended pods are removed. */
export class GarbageFirst implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** Since when nothing has used an image, by its name, and since when the pod of a dead container has been over. */
  #images = new Map<string, number>();
  #containers = new Map<string, number>();
  /** When this run of podwright first listed an image, to collect some: it learns from that how old the image is. */
  readonly #listedMs = new Map<string, number>();
  #lifeMs = 0;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    const { node, world } = scene;
    node.resources.onLook(() => this.#observe());
    node.imagesListed.on(() => this.#listed());
    world.images.onAdded((image) => void this.#listedMs.delete(image));
  }

  entry(entry: SimEntry): void {
    if (entry.what === lifeStarted) {
      this.#lifeMs = entry.atMs;
      this.#listedMs.clear();
    }
    if (entry.what !== "PodEvicted") return;
    const about = signals.find((signal) => signal === dataText(entry, "signal"));
    const resource = about && resourceOf(about);
    if (about !== undefined && (resource === "ephemeral-storage" || resource === "inodes")) this.#evicted(entry, about);
  }

  #listed(): void {
    const { clock, world, node } = this.#scene;
    // The rest of the look may fail.
    if (node.soundSinceMs > clock.nowMs) return;
    for (const { id } of world.images.list()) {
      const name = id.replace(/^sha256:/u, "");
      if (!this.#listedMs.has(name)) this.#listedMs.set(name, clock.nowMs);
    }
  }

  #observe(): void {
    const { clock, world, node } = this.#scene;
    const used = new Set([...world.containers.values()].flatMap(imagesOf));
    const names = world.images.list().map(({ id }) => id.replace(/^sha256:/u, ""));
    const isUnused = (name: string): boolean =>
      !used.has(name) && !world.images.isPinned(name) && wants(this.#scene, name) === undefined;
    const keep = (before: ReadonlyMap<string, number>, keys: readonly string[]): Map<string, number> =>
      new Map(keys.map((key) => [key, before.get(key) ?? clock.nowMs]));
    this.#images = keep(this.#images, names.filter(isUnused));
    const over = new Set(
      node.pods().flatMap(({ view: { ref, state } }) => (state.kind === "finished" ? [String(ref.uid)] : [])),
    );
    const dead = [...world.containers.values()].filter(({ state, config }) => {
      return state === "exited" && over.has(config.labels["io.kubernetes.pod.uid"] ?? "");
    });
    this.#containers = keep(
      this.#containers,
      dead.map(({ id }) => id),
    );
  }

  #evicted({ pod, atMs }: SimEntry, about: Signal): void {
    const { node, world } = this.#scene;
    const place = node.resources.placeOf(about);
    const [hasImages, hasLayers] = (["imagefs.available", "containerfs.available"] as const).map(
      (signal) => node.resources.placeOf(signal) === place,
    );
    const soundMs = Math.max(node.soundSinceMs, node.removalFaultMs) + recoveredMs;
    if (!node.callsAreTimely || !node.knowsAllPods || soundMs > atMs) return;
    const { minAgeMs } = node.imagePolicy;
    const isOld = (sinceMs: number, forMs: number): boolean => atMs - Math.max(sinceMs, this.#lifeMs) > forMs;
    const image = [...this.#images].find(([name, sinceMs]) => {
      const listedMs = this.#listedMs.get(name);
      if (listedMs === undefined || !world.images.has(name)) return false;
      return isOld(Math.max(sinceMs, listedMs), minAgeMs + unheardMs);
    });
    const container = [...this.#containers].find(
      ([id, sinceMs]) => world.containers.has(id) && isOld(sinceMs, unheardMs),
    );
    // Those that may be elsewhere stay.
    const areFound = node.resources.tellsFileSystems;
    const left = (hasImages && areFound ? image?.[0] : undefined) ?? (hasLayers ? container?.[0] : undefined);
    if (left !== undefined) this.#broken("garbage is removed before pods are evicted", `${pod?.uid} before ${left}`);
  }
}
