import type { SimEntry } from "../life/node.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { sizeOf } from "../images.ts";
import { dataText } from "./entry-data.ts";
import { imagesOf, wants } from "./image-users.ts";
import type { Break, Rule, Scene } from "./rule.ts";

/** The interval of collections, which also observe which images are in use. */
const periodMs = 300_000;
/** More than a collection takes while nothing is at fault. */
const marginMs = 60_000;

/** Collections of images keep to their policy, and remove and free what they report. */
export class ImagePolicyRules implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  readonly #addedMs = new Map<string, number>();
  /** When the last container of an image was removed. */
  readonly #usedMs = new Map<string, number>();
  /** Pulled again after a removal that podwright may not know of: it may take the image for the one before. */
  readonly #unclear = new Set<string>();
  /** Images removed since the last report, and since when. */
  #removed: string[] = [];
  #removedSinceMs = 0;
  #lifeMs = 0;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    const { clock, world } = scene;
    world.images.onAdded((image) => void this.#addedMs.set(image, clock.nowMs));
    world.images.onRemoved((image) => this.#gone(image));
  }

  entry(entry: SimEntry): void {
    const { kind, what, data, atMs } = entry;
    if (what === lifeStarted) {
      this.#lifeMs = atMs;
      this.#reported(atMs);
      for (const image of this.#addedMs.keys()) this.#unclear.add(image);
    }
    if (kind === "action" && what === "RemoveImage" && data?.["reason"] === "age") this.#forAge(entry);
    if (what === "ImagesCollected") this.#collected(entry);
  }

  change({ type, container }: Parameters<NonNullable<Rule["change"]>>[0]): void {
    if (type !== "removed" || container === undefined) return;
    for (const image of imagesOf(container)) this.#usedMs.set(image, this.#scene.clock.nowMs);
  }

  /** What should have been removed for its age. */
  disagreements(): readonly string[] {
    const { clock, node, world } = this.#scene;
    const { maxAgeMs } = node.imagePolicy;
    const longMs = maxAgeMs + 2 * periodMs + marginMs;
    if (maxAgeMs === 0 || clock.nowMs - this.#lifeMs < longMs) return [];
    // A failed removal is tried again by the next collection.
    if (clock.nowMs - node.removalFaultMs < periodMs + marginMs) return [];
    return world.images.list().flatMap(({ id, pinned }) => {
      const image = id.replace(/^sha256:/u, "");
      const isUsed = pinned || clock.nowMs - this.#lastUseMs(image) < longMs || wants(this.#scene, image) !== undefined;
      return isUsed ? [] : [`${image} was not in use for more than ${maxAgeMs} ms`];
    });
  }

  #gone(image: string): void {
    const { clock, node, world } = this.#scene;
    const addedMs = this.#addedMs.get(image) ?? Number.NEGATIVE_INFINITY;
    this.#removed.push(image);
    if (world.images.isPinned(image)) this.#broken("pinned images stay", image);
    const ageMs = clock.nowMs - addedMs;
    if (ageMs < node.imagePolicy.minAgeMs && !this.#unclear.has(image)) {
      this.#broken("images stay for their minimum age", `${image} was removed after ${ageMs} ms`);
    }
    if (!node.callsAreTimely || node.soundSinceMs + marginMs > clock.nowMs) this.#unclear.add(image);
    else this.#unclear.delete(image);
  }

  /** Whether podwright observed a later use is the order's concern. */
  #forAge(entry: SimEntry): void {
    const { maxAgeMs } = this.#scene.node.imagePolicy;
    const image = dataText(entry, "image").replace(/^sha256:/u, "");
    const ranMs = entry.atMs - this.#lifeMs;
    const addedMs = this.#unclear.has(image) ? Number.NEGATIVE_INFINITY : (this.#addedMs.get(image) ?? 0);
    const ageMs = entry.atMs - addedMs;
    if (maxAgeMs > 0 && ranMs > maxAgeMs && ageMs > maxAgeMs) return;
    const detail = `${image} is there for ${ageMs} ms, and this run began ${ranMs} ms ago`;
    this.#broken("images are removed for their age only beyond the maximum", detail);
  }

  #collected({ data, atMs }: SimEntry): void {
    const { world } = this.#scene;
    const [removed, freedBytes] = [Number(data?.["removed"]), Number(data?.["freedBytes"])];
    const bytes = this.#removed.reduce((sum, image) => sum + sizeOf(image), 0);
    const others = world.images.freedMs >= this.#removedSinceMs ? Number.POSITIVE_INFINITY : 0;
    if (removed > this.#removed.length || freedBytes > bytes + others) {
      const detail = `${removed} images and ${freedBytes} bytes, not ${this.#removed.length} and ${bytes}`;
      this.#broken("a collection frees what it reports", detail);
    }
    this.#reported(atMs);
  }

  #reported(atMs: number): void {
    this.#removed = [];
    this.#removedSinceMs = atMs;
  }

  #lastUseMs(image: string): number {
    const isUsed = [...this.#scene.world.containers.values()].some((container) => imagesOf(container).includes(image));
    if (isUsed) return this.#scene.clock.nowMs;
    return Math.max(this.#usedMs.get(image) ?? 0, this.#addedMs.get(image) ?? 0);
  }
}
