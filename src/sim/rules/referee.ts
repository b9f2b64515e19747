import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import type { Problem } from "../life/problem.ts";
import type { WorldChange } from "../world-model.ts";
import { watchCalmRestart } from "./calm-restart.ts";
import { rules } from "./index.ts";
import type { Rule, Scene, Unwanted } from "./rule.ts";

/** Enough to see what is wrong. */
const manyProblems = 20;
/** After this many checks of a restarted node, nothing is in progress any more. */
const manyLooks = 6;

/** Watches a life and judges it by all rules. */
export class Referee {
  readonly problems: Problem[] = [];
  readonly #scene: Scene;
  readonly #pods = new Map<string, Pod>();
  readonly #unwanted = new Map<string, Unwanted>();
  /** Undesired pods that podwright has begun to stop in its current run. */
  readonly #ending = new Set<string>();
  /** Undesired pods that podwright has finished: what the runtime creates for them later need not be stopped. */
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

  /** A pod is desired: a new one, or one that was desired before. */
  wanted(pod: Pod): void {
    const { uid } = pod.metadata;
    const before = this.#pods.get(uid);
    // A static pod may have changed while podwright was down.
    const isOther = before !== undefined && JSON.stringify(before.spec) !== JSON.stringify(pod.spec);
    if (isOther && !this.#unwanted.has(uid)) return this.changed(pod);
    this.#pods.set(uid, pod);
    if (!this.#unwanted.has(uid)) return;
    // podwright first removes what is in progress: it then reports that the pod is finished.
    const isOver = !this.#isThere(uid) || this.#finished.has(uid);
    if (isOver && !this.#scene.node.isEnding(uid)) this.#reborn(uid);
    // podwright never learned that it was undesired in between.
    else if (!this.#ending.has(uid)) this.#unwanted.delete(uid);
  }

  /** A desired pod changes. */
  changed(pod: Pod): void {
    for (const rule of this.#rules) rule.changed?.(this.#pods.get(pod.metadata.uid), pod);
    this.#pods.set(pod.metadata.uid, pod);
  }

  /**
   * The pod is no longer desired: from the next call on nothing of it may start.
   * @param isEnding it was already being stopped for another reason, so its grace period ends earlier
   * @param graceSeconds replaces the pod's own
   */
  unwanted(uid: string, isEnding: boolean, graceSeconds?: number): void {
    const { clock, node } = this.#scene;
    this.#finished.delete(uid);
    this.#unwanted.set(uid, {
      sinceMs: clock.nowMs,
      life: node.lives,
      reachedNode: node.isUp && node.knowsAllPods,
      isEnding,
      graceSeconds,
    });
  }

  /** podwright knows that the pod is undesired. */
  isUnwanted(uid: string): boolean {
    return this.#unwanted.has(uid);
  }

  /** A container of the pod was removed by others: its state is unknown. */
  tampered(uid: string): void {
    for (const rule of this.#rules) rule.tampered?.(uid);
  }

  entry(entry: SimEntry): void {
    // A new run knows what is desired now, not what was undesired in between.
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
      // podwright was notified in between, and can only act now: the pod is removed, and returns afterwards.
      const goes = entry.cause?.code === "ManifestRemoved" && isDesired;
      // A static pod was removed while podwright was down: no source reported it.
      const wentUntold = entry.cause?.code === "OrphanedPod" && !isDesired;
      if ((goes || wentUntold) && !this.#unwanted.has(entry.pod.uid)) this.unwanted(entry.pod.uid, false);
    }
    for (const rule of this.#rules) rule.entry?.(entry);
    // Nothing of some pods ever existed.
    const gone = entry.what === "PodFinished" && entry.pod !== undefined ? entry.pod.uid : "";
    if (this.#unwanted.has(gone)) this.#finished.add(gone);
    // A pod that had ended before does not end again for a removal and return that podwright could not observe.
    const wasToGo = this.#unwanted.has(gone) || this.#ending.has(gone);
    if (wasToGo && this.#scene.node.desired.has(gone) && !this.#isThere(gone)) this.#reborn(gone);
  }

  /** What differs from the desired state although nothing has failed for a while. */
  async disagreements(): Promise<string[]> {
    const all = await Promise.all(this.#rules.map(async (rule) => (await rule.disagreements?.()) ?? []));
    return all.flat();
  }

  /** @param wait lets some time pass: a container may just have exited, with its pod's status in progress */
  async atRest(wait: () => Promise<void>): Promise<void> {
    for (const problem of await this.#lasting(wait)) this.broken("desired and actual state match", problem);
    for (const rule of this.#rules) await rule.atRest?.();
  }

  /**
   * Restarts podwright while all is well.
   * @param wait lets some time pass: a pod may just be restarting
   */
  async restarted(restart: () => Promise<void>, wait: () => Promise<void>): Promise<void> {
    for (const rule of this.#rules) rule.calm?.(true);
    await watchCalmRestart(this.#scene, (rule, detail) => this.broken(rule, detail), restart);
    for (const rule of this.#rules) rule.calm?.(false);
    for (const problem of await this.#lasting(wait)) this.broken("a restart changes nothing", problem);
  }

  /** Disagreements that persist through many checks. */
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
