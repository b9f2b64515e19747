import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { SimEntry } from "../life/node.ts";
import { forgetPod, whereOf } from "./entry-data.ts";
import { recoveredMs, type Break, type Rule, type Scene } from "./rule.ts";

/** A periodic resync comes after a minute at the earliest. */
const takenUpWithinMs = 55_000;

/** Entries that show a start attempt, or why it has to wait. */
const tries: ReadonlySet<EntryName> = new Set([
  "PullImage",
  "ImagePresent",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "BackOff",
]);

/** A container that waits for a retry, as for a missing image, is retried soon after it gets another image. */
export class Corrections implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** Containers that wait for a retry, by `uid/name`: simulated ms at which it is due. */
  readonly #waiting = new Map<string, number>();
  /** Those that have changed, and since when, in simulated ms. */
  readonly #corrected = new Map<string, number>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  changed(before: Pod | undefined, { metadata: { uid }, spec }: Pod): void {
    const { clock, node } = this.#scene;
    for (const { name, image } of spec.containers) {
      const key = `${uid}/${name}`;
      const old = before?.spec.containers.find((container) => container.name === name);
      if (old === undefined || old.image === image || !node.desired.has(uid)) continue;
      if ((this.#waiting.get(key) ?? 0) > clock.nowMs + takenUpWithinMs) this.#corrected.set(key, clock.nowMs);
    }
  }

  entry(entry: SimEntry): void {
    const { kind, what, pod, container, time, until, atMs } = entry;
    if (what === lifeStarted) for (const known of [this.#waiting, this.#corrected]) known.clear();
    if (this.#corrected.size > 0) this.#look();
    if (pod === undefined) return;
    // From then on it waits for something else, or for nothing.
    const isOther = what.includes("Sandbox") || what === "PodTerminating" || what === "RemoveContainer";
    if (isOther) forgetPod(pod.uid, this.#waiting, this.#corrected);
    const key = whereOf(entry);
    if (kind === "action" || tries.has(what)) for (const known of [this.#waiting, this.#corrected]) known.delete(key);
    if (what !== "StartRetry" || container === undefined || until === undefined) return;
    this.#waiting.set(key, atMs + until - time);
  }

  #look(): void {
    const { clock, node, unwanted } = this.#scene;
    for (const [key, atMs] of this.#corrected) {
      const isSound = node.obedientSinceMs + recoveredMs < atMs && node.knowsAllPods;
      const isOver = unwanted.has(key.split("/")[0] ?? "") || !isSound;
      if (!isOver && clock.nowMs <= atMs + takenUpWithinMs) continue;
      this.#corrected.delete(key);
      if (isOver) continue;
      this.#broken("changes take effect", `${key} still waits as it was after ${clock.nowMs - atMs} ms`);
    }
  }
}
