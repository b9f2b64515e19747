import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { isRejection, type EntryName } from "../../journal/vocabulary.ts";
import type { SimEntry } from "../life/node.ts";
import { type Break, recoveredMs, type Rule, type Scene } from "./rule.ts";

interface Moment {
  readonly atMs: number;
  readonly life: number;
  readonly wallOffsetMs: number;
}

interface Sight extends Moment {
  /** There was time, and a working disk, to record it. */
  isWritten: boolean;
}

/** Within this time the state of a pod is on the disk. */
const writtenMs = 10_000;
/** One inspection with slow calls. */
const noticedWithinMs = 20_000;
const roundingMs = 5;
/** Before its admission, or while it waits for its name, a pod is not inspected. */
const holds: ReadonlySet<EntryName> = new Set(["AdmissionWaits", "PodWaits"]);

/** A pod is ended when its `activeDeadlineSeconds` have passed: not earlier, and without faults not later. */
export class Deadlines implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** When podwright first saw each pod; undefined when that is unknown or not decisive. */
  readonly #first = new Map<string, Sight | undefined>();
  /** When each pod was first desired, so that it cannot have been seen earlier; undefined as above. */
  readonly #wanted = new Map<string, Moment | undefined>();
  /** Simulated ms of the last entry, when the previous run was still alive. */
  #lastMs = 0;
  /** Simulated ms at which this run began. */
  #lifeMs = 0;
  /** Simulated ms of the last entry before manifests and runtime had been read: until then no pod could be ended. */
  #unknownMs = 0;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  reborn(uid: string): void {
    this.#forget(uid);
  }

  changed(before: Pod | undefined, after: Pod): void {
    const { uid } = after.metadata;
    if (before === undefined) this.#wanted.set(uid, this.#wanted.has(uid) ? undefined : this.#now());
    else if (before.spec.activeDeadlineSeconds !== after.spec.activeDeadlineSeconds) this.#forget(uid);
  }

  entry({ kind, what, pod, atMs, cause }: SimEntry): void {
    const { node } = this.#scene;
    if (what === lifeStarted) {
      this.#begin();
      this.#lifeMs = atMs;
    }
    this.#lastMs = atMs;
    if (!node.knowsAllPods) this.#unknownMs = atMs;
    if (pod === undefined) return;
    const { uid } = pod;
    // A later run may admit a pod that was rejected; it then counts from that.
    if (holds.has(what) || isRejection(what)) this.#first.set(uid, undefined);
    // A standalone node reports a pod that it has seen before only when it acts on it.
    const isSight = node.cluster === undefined || (what === "PodAdded" && kind === "input");
    if (isSight && !this.#first.has(uid)) {
      this.#first.set(uid, { ...this.#now(), atMs, isWritten: false });
    }
    if (what === "PodTerminating" && cause?.code === "DeadlineExceeded") this.#ended(uid, atMs);
  }

  #forget(uid: string): void {
    this.#first.set(uid, undefined);
    this.#wanted.set(uid, undefined);
  }

  #now(): Moment {
    const { clock, node } = this.#scene;
    return { atMs: clock.nowMs, life: node.lives, wallOffsetMs: clock.wallMs - clock.nowMs };
  }

  /** A new run relies on recorded state and the wall clock. */
  #begin(): void {
    const { wallOffsetMs } = this.#now();
    const { diskFaultMs } = this.#scene.node;
    for (const [uid, sight] of this.#first) {
      if (sight === undefined) continue;
      sight.isWritten ||= sight.atMs + writtenMs < this.#lastMs && diskFaultMs < sight.atMs;
      if (!sight.isWritten || sight.wallOffsetMs !== wallOffsetMs) this.#first.set(uid, undefined);
    }
  }

  #ended(uid: string, atMs: number): void {
    const { node, pods } = this.#scene;
    const seconds = pods.get(uid)?.spec.activeDeadlineSeconds;
    if (seconds === undefined) return;
    const sight = this.#first.get(uid);
    const since = node.cluster === undefined ? this.#wantedOf(uid) : sight;
    const earlyMs = since === undefined ? 0 : since.atMs + seconds * 1000 - atMs;
    if (earlyMs > roundingMs) this.#broken("deadline", `${uid} was ended ${earlyMs} ms before its deadline`);
    if (sight === undefined) return;
    const dueMs = sight.atMs + seconds * 1000;
    const lateMs = atMs - Math.max(dueMs, this.#unknownMs);
    // A call that hung earlier may have delayed this inspection or the next.
    const isSound = this.#wasSoundBefore(sight.life === node.lives ? sight.atMs : dueMs);
    if (isSound && lateMs > noticedWithinMs) {
      this.#broken("deadline", `${uid} was ended ${lateMs} ms after its deadline`);
    }
  }

  /** A later run dates recorded state by the wall clock. */
  #wantedOf(uid: string): Moment | undefined {
    const now = this.#now();
    const wanted = this.#wanted.get(uid);
    return wanted?.life === now.life || wanted?.wallOffsetMs === now.wallOffsetMs ? wanted : undefined;
  }

  /** A new run does not wait for calls that hung before it. */
  #wasSoundBefore(atMs: number): boolean {
    const { soundSinceMs } = this.#scene.node;
    const isSinceStart = soundSinceMs <= this.#lifeMs && this.#lifeMs <= atMs;
    return isSinceStart || soundSinceMs + recoveredMs < atMs;
  }
}
