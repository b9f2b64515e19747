import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import type { Problem } from "../life/problem.ts";
import type { WorldChange } from "../world-model.ts";
import { watchCalmRestart } from "./calm-restart.ts";
import { rules } from "./index.ts";
import type { Rule, Scene, Unwanted } from "./rule.ts";

/** So many are enough to see what is wrong. */
const manyProblems = 20;
/** After so many looks at a node that was started again nothing is on its way any more. */
const manyLooks = 6;

/** Watches a life and judges it by all rules. */
export class Referee {
  readonly problems: Problem[] = [];
  readonly #scene: Scene;
  readonly #pods = new Map<string, Pod>();
  readonly #unwanted = new Map<string, Unwanted>();
  /** Those of them that podwright has begun to stop in its present life. */
  readonly #ending = new Set<string>();
  /** Those of them that podwright was done with: what the runtime made of them later is nothing that it stops. */
  readonly #finished = new Set<string>();
  readonly #rules: readonly Rule[];

  constructor(scene: Pick<Scene, "clock" | "world" | "node">) {
    this.#scene = { ...scene, pods: this.#pods, unwanted: this.#unwanted };
    this.#rules = rules.map((make) => make(this.#scene, (rule, detail) => this.broken(rule, detail)));
    scene.world.onChange((change) => this.#change(change));
  }

  broken(rule: string, detail: string): void {
    if (this.problems.length < manyProblems) this.problems.push({ rule, detail, atMs: this.#scene.clock.nowMs });
  }

  /** A pod is wanted: a new one, or one that was wanted before. */
  wanted(pod: Pod): void {
    const { uid } = pod.metadata;
    this.#pods.set(uid, pod);
    if (!this.#unwanted.has(uid)) return;
    // What is on its way still, podwright takes away first: it is done with the pod then, and says so.
    const isOver = !this.#isThere(uid) || this.#finished.has(uid);
    if (isOver && !this.#scene.node.isEnding(uid)) this.#reborn(uid);
    // Podwright never learned that it was not wanted in between.
    else if (!this.#ending.has(uid)) this.#unwanted.delete(uid);
  }

  /** A wanted pod is to be different. */
  changed(pod: Pod): void {
    for (const rule of this.#rules) rule.changed?.(this.#pods.get(pod.metadata.uid), pod);
    this.#pods.set(pod.metadata.uid, pod);
  }

  /**
   * The pod is wanted no longer: from the next call on nothing of it may start.
   * @param isEnding it was stopped for another reason already, so that its grace ends earlier
   * @param graceSeconds another than the pod's own
   */
  unwanted(uid: string, isEnding: boolean, graceSeconds?: number): void {
    const { clock, node } = this.#scene;
    this.#finished.delete(uid);
    this.#unwanted.set(uid, {
      sinceMs: clock.nowMs,
      life: node.lives,
      told: node.isUp && node.knowsAllPods,
      isEnding,
      graceSeconds,
    });
  }

  /** Podwright knows that the pod is to go. */
  isUnwanted(uid: string): boolean {
    return this.#unwanted.has(uid);
  }

  /** Somebody else took a container of the pod away: what it was is known to nobody any more. */
  tampered(uid: string): void {
    for (const rule of this.#rules) rule.tampered?.(uid);
  }

  entry(entry: SimEntry): void {
    // A new life knows what is wanted now, not what was unwanted for a while.
    if (entry.what === lifeStarted) {
      for (const uid of [...this.#unwanted.keys()]) {
        if (!this.#scene.node.desired.has(uid)) continue;
        if (this.#isThere(uid)) this.#unwanted.delete(uid);
        else this.#reborn(uid);
      }
    }
    if (entry.what === lifeStarted) this.#ending.clear();
    if (entry.what === "PodTerminating" && entry.pod !== undefined) {
      this.#ending.add(entry.pod.uid);
      const isDesired = this.#scene.node.desired.has(entry.pod.uid);
      // Podwright was told in between, and is only now able to look: the pod goes, and comes back after that.
      const goes = entry.cause?.code === "ManifestRemoved" && isDesired;
      // A static pod went while podwright was away: no source told of it.
      const wentUntold = entry.cause?.code === "OrphanedPod" && !isDesired;
      if ((goes || wentUntold) && !this.#unwanted.has(entry.pod.uid)) this.unwanted(entry.pod.uid, false);
    }
    for (const rule of this.#rules) rule.entry?.(entry);
    // Of some pods nothing ever was there.
    const gone = entry.what === "PodFinished" && entry.pod !== undefined ? entry.pod.uid : "";
    if (this.#unwanted.has(gone)) this.#finished.add(gone);
    // One that had ended before has no end of its own for having gone and come back while podwright could not look.
    const wasToGo = this.#unwanted.has(gone) || this.#ending.has(gone);
    if (wasToGo && this.#scene.node.desired.has(gone) && !this.#isThere(gone)) this.#reborn(gone);
  }

  /** What is not as wanted although nothing has gone wrong for a while. */
  async disagreements(): Promise<string[]> {
    const all = await Promise.all(this.#rules.map(async (rule) => (await rule.disagreements?.()) ?? []));
    return all.flat();
  }

  /** @param wait lets some time pass: at that moment a container may just have ended, and its pod's status be on its way */
  async atRest(wait: () => Promise<void>): Promise<void> {
    for (const problem of await this.#lasting(wait)) this.broken("wanted and actual agree", problem);
    for (const rule of this.#rules) await rule.atRest?.();
  }

  /**
   * Podwright is started again while all is well.
   * @param wait lets some time pass: at that moment a pod may just be starting over
   */
  async restarted(restart: () => Promise<void>, wait: () => Promise<void>): Promise<void> {
    for (const rule of this.#rules) rule.calm?.(true);
    await watchCalmRestart(this.#scene, (rule, detail) => this.broken(rule, detail), restart);
    for (const rule of this.#rules) rule.calm?.(false);
    for (const problem of await this.#lasting(wait)) this.broken("a restart changes nothing", problem);
  }

  /** Disagreements that are there at each of many looks. */
  async #lasting(wait: () => Promise<void>): Promise<string[]> {
    let problems = await this.disagreements();
    for (let left = manyLooks; left > 0 && problems.length > 0; left--) {
      await wait();
      problems = await this.disagreements();
    }
    return problems;
  }

  #change(change: WorldChange): void {
    for (const rule of this.#rules) rule.change?.(change);
    const { podUid: uid, type } = change;
    const isGone = type === "sandboxRemoved" && this.#unwanted.has(uid) && !this.#isThere(uid);
    if (isGone && this.#scene.node.desired.has(uid)) this.#reborn(uid);
  }

  #reborn(uid: string): void {
    this.#unwanted.delete(uid);
    this.#ending.delete(uid);
    this.#finished.delete(uid);
    for (const rule of this.#rules) rule.reborn?.(uid);
  }

  #isThere(uid: string): boolean {
    return [...this.#scene.world.sandboxes.values()].some(({ config }) => config.metadata?.uid === uid);
  }
}
