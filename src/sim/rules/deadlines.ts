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
  /** There was time and a disk to write it down. */
  isWritten: boolean;
}

/** Within so long what is known of a pod is on the disk. */
const writtenMs = 10_000;
/** One look at the pod, by slow calls. */
const noticedWithinMs = 20_000;
const roundingMs = 5;
/** Before it is let in, or while it is behind another one of its name, nobody looks at a pod. */
const holds: ReadonlySet<EntryName> = new Set(["AdmissionWaits", "PodWaits"]);

/** A pod is ended for its `activeDeadlineSeconds` when they are over: no sooner, and no later while nothing goes wrong. */
export class Deadlines implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** When podwright first saw each pod; undefined once that can't be told, or is not what counts. */
  readonly #first = new Map<string, Sight | undefined>();
  /** When each pod was first wanted, before which nobody can have seen it; undefined as above. */
  readonly #wanted = new Map<string, Moment | undefined>();
  /** Simulated ms of the last entry: by then the life before was still there. */
  #lastMs = 0;
  /** Simulated ms at which this life began. */
  #lifeMs = 0;
  /** Simulated ms of the last entry at which manifests, or what runs, had yet to be read: nobody could end a pod then. */
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
    // One that is refused may be let in by a later life, which sees it first.
    if (holds.has(what) || isRejection(what)) this.#first.set(uid, undefined);
    // Alone, a node says nothing of a pod that it has seen before it does something for it.
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

  /** A new life goes by what was written down, and by the wall clock. */
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
    // A call that hung before may be what the first look waited for, or a later one.
    const isSound = this.#wasSoundBefore(sight.life === node.lives ? sight.atMs : dueMs);
    if (isSound && lateMs > noticedWithinMs) {
      this.#broken("deadline", `${uid} was ended ${lateMs} ms after its deadline`);
    }
  }

  /** A later life dates what it knows by the wall clock. */
  #wantedOf(uid: string): Moment | undefined {
    const now = this.#now();
    const wanted = this.#wanted.get(uid);
    return wanted?.life === now.life || wanted?.wallOffsetMs === now.wallOffsetMs ? wanted : undefined;
  }

  /** A new life waits for no call that hung before it. */
  #wasSoundBefore(atMs: number): boolean {
    const { soundSinceMs } = this.#scene.node;
    const isSinceStart = soundSinceMs <= this.#lifeMs && this.#lifeMs <= atMs;
    return isSinceStart || soundSinceMs + recoveredMs < atMs;
  }
}
