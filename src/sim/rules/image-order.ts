import type { SimEntry } from "../life/node.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { dataText } from "./entry-data.ts";
import { imagesOf, tagged, wants } from "./image-users.ts";
import { volumeOf } from "./images.ts";
import { recoveredMs, type Rule, type Scene, type Break } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/** More than the calls of an observation take. */
const slackMs = 60_000;
/** A collection ends in this time, and has then recorded what it observed. */
const recordedMs = 180_000;

/**
 * For lack of space, images go in the order of their last use, also over restarts, and for their age only if that was
 * long ago. Starts note the use, and collections observe it. The rule compares an image that
 * podwright must know to be used with those that could not be used any more.
 */
export class ImageOrder implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  readonly #createdMs = new Map<string, number>();
  readonly #addedMs = new Map<string, number>();
  /** The last moment at which a container may have had the image, or a start used it. */
  readonly #latestUseMs = new Map<string, number>();
  /** When podwright last created or observed a container of the image. */
  #knownUseMs = new Map<string, number>();
  /** The same, as far as it is on the disk. */
  #recorded: { readonly atMs: number; readonly uses: ReadonlyMap<string, number>; readonly images: string }[] = [];
  /** Images that nothing kept at the last observation. */
  #free: ReadonlySet<string> = new Set();
  #lifeMs = 0;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    const { clock, world, node } = scene;
    world.images.onAdded((image) => {
      this.#addedMs.set(image, clock.nowMs);
      this.#knownUseMs.delete(image);
    });
    node.imagesListed.on(() => this.#listed());
  }

  entry(entry: SimEntry): void {
    const { kind, what, atMs, data } = entry;
    if (what === lifeStarted) this.#begin(atMs);
    if (what === "ImagePresent" || what === "PullImage") this.#starting(entry);
    if (kind !== "action" || what !== "RemoveImage") return;
    if (data?.["reason"] === "space") this.#removing(entry);
    if (data?.["reason"] === "age") this.#removingForAge(entry);
  }

  /** A start that uses the image, whether or not it comes to a container. */
  #starting(entry: SimEntry): void {
    const { pod, container, atMs } = entry;
    const { pods } = this.#scene;
    const { image = "" } = specContainers(pods, pod?.uid).find(({ name }) => name === container) ?? {};
    this.#latestUseMs.set(tagged(volumeOf(pods, entry)?.image?.reference ?? image), atMs);
  }

  change({ type, container }: Parameters<NonNullable<Rule["change"]>>[0]): void {
    const { nowMs } = this.#scene.clock;
    if (container === undefined) return;
    if (type === "created") {
      this.#createdMs.set(container.id, nowMs);
      // A start notes it, whether or not a collection sees its container.
      if (this.#isSound()) for (const image of imagesOf(container)) this.#knownUseMs.set(image, nowMs);
    }
    if (type === "removed") for (const image of imagesOf(container)) this.#latestUseMs.set(image, nowMs);
  }

  #begin(atMs: number): void {
    const { node } = this.#scene;
    this.#lifeMs = atMs;
    this.#free = new Set();
    const isReadable = node.diskFaultMs === Number.NEGATIVE_INFINITY;
    const last = this.#recorded.findLast((each) => each.atMs + recordedMs < atMs);
    const uses = isReadable && last !== undefined ? [...last.uses] : [];
    // An image that came again since then is a new one.
    this.#knownUseMs = new Map(uses.filter(([image]) => (this.#addedMs.get(image) ?? 0) <= (last?.atMs ?? 0)));
    this.#recorded = [];
  }

  /** podwright observes the images and their containers for a collection. */
  #listed(): void {
    const { clock, world } = this.#scene;
    const isSound = this.#isSound();
    const containers = [...world.containers.values()];
    const used = new Set(containers.flatMap(imagesOf));
    if (isSound) {
      for (const container of containers) {
        const sinceMs = this.#createdMs.get(container.id) ?? clock.nowMs;
        if (clock.nowMs - sinceMs <= slackMs) continue;
        for (const image of imagesOf(container)) this.#knownUseMs.set(image, clock.nowMs);
      }
    }
    const names = world.images.list().map(({ id }) => id.replace(/^sha256:/u, ""));
    const images = names.map((name) => `${name} ${used.has(name)}`).join(" ");
    // Unchanged uses are seldom written.
    if (images !== this.#recorded.at(-1)?.images) {
      this.#recorded.push({ atMs: clock.nowMs, uses: new Map(this.#knownUseMs), images });
    }
    this.#free = new Set(isSound ? names.filter((name) => !used.has(name) && this.#isFree(name)) : []);
  }

  #isSound(): boolean {
    const { clock, node } = this.#scene;
    return node.callsAreTimely && node.soundSinceMs + recoveredMs <= clock.nowMs;
  }

  #isFree(image: string): boolean {
    const { clock, node, world } = this.#scene;
    const { minAgeMs } = node.imagePolicy;
    const knownMs = Math.max(this.#addedMs.get(image) ?? 0, this.#lifeMs);
    const isOld = clock.nowMs - knownMs > minAgeMs + 300_000 + slackMs;
    return isOld && !world.images.isPinned(image) && wants(this.#scene, image) === undefined;
  }

  #removingForAge(entry: SimEntry): void {
    const { maxAgeMs } = this.#scene.node.imagePolicy;
    const image = dataText(entry, "image").replace(/^sha256:/u, "");
    this.#tried(image);
    const unusedMs = entry.atMs - (this.#knownUseMs.get(image) ?? Number.NEGATIVE_INFINITY);
    if (unusedMs > maxAgeMs - slackMs) return;
    const detail = `${image} was seen in use ${unusedMs} ms ago`;
    this.#broken("images are removed for their age only beyond the maximum", detail);
  }

  #removing(entry: SimEntry): void {
    const image = dataText(entry, "image").replace(/^sha256:/u, "");
    this.#tried(image);
    const usedMs = this.#knownUseMs.get(image);
    if (usedMs === undefined) return;
    const before = [...this.#free].find((other) => {
      const latestMs = this.#latestUseMs.get(other) ?? Number.NEGATIVE_INFINITY;
      return this.#scene.world.images.has(other) && latestMs + slackMs < usedMs;
    });
    if (before === undefined) return;
    this.#broken("longest unused images are removed first", `${image}, used at ${usedMs} ms, goes before ${before}`);
  }

  /** If it stays, the next one is taken. */
  #tried(image: string): void {
    this.#free = new Set([...this.#free].filter((other) => other !== image));
  }
}
