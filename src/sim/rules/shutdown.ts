import { isStaticPod } from "../../api/pod-kind.ts";
import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { groupOf, type ShutdownPeriod } from "../../shutdown/periods.ts";
import type { OffReason } from "../life/machine-power.ts";
import type { SimEntry } from "../life/node.ts";
import { simShutdownPeriods as periods } from "../life/sim-node-rooms.ts";
import type { WorldChange } from "../world-model.ts";
import { endingOf } from "./endings.ts";
import { dataText } from "./entry-data.ts";
import { type Break, recoveredMs, type Rule, type Scene } from "./rule.ts";

/** Maximum duration of a stop beyond its grace period: the runtime's minimum timeout, and its own time. */
const stopMs = 8000;
/** A runtime is given no less. */
const leastGraceMs = 2000;
/** Maximum delay of an announcement. */
const noticeMs = 1000;
/** Within this time of knowing all pods a run continues the shutdown of an earlier one, and stops what has no time left. */
const continuedMs = 5000;
/** More than recording state on the disk takes. */
const writtenMs = 60_000;
/** The same on a disk without faults. */
const storedMs = 500;
/** A run that starts during a shutdown waits this long until all pods are known, and until the login manager answers. */
const lateMs = 10_000;
const answerMs = 3000;
/** Time to release what a stopped pod still holds, and then the lock. */
const releaseMs = 15_000;

/**
 * A shutdown of the machine keeps its order and its deadlines, also when podwright is killed: pods of lower priority
 * end first, no pod has more time than its group, no group has more than its time, no pod starts meanwhile, and nothing
 * waits for removed pods.
 */
export class Shutdowns implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** When this run learned of a shutdown in progress, simulated ms. */
  #begunMs: number | undefined;
  /** The pods that were desired when the shutdown was announced; undefined: no shutdown. */
  #present: ReadonlySet<string> | undefined;
  #announcedMs = 0;
  /** When the last shutdown was cancelled or over, simulated ms. */
  #overMs = Number.POSITIVE_INFINITY;
  /** When the first run began to end the pods of each group in this shutdown. */
  readonly #groups = new Map<number, number>();
  /** A run learns from the wall clock how much time its predecessors have used. */
  #wallOffsetMs = 0;
  #lifeMs = 0;
  #announcedOffsetMs = 0;
  /** Of the last entry, and of the last one of the run before, simulated ms. */
  #entryMs = 0;
  #formerMs = 0;
  /** When this run knew all pods, simulated ms. */
  #knownMs: number | undefined;
  /** When containers of a pod must be gone, simulated ms. */
  readonly #due = new Map<string, number>();
  #lastEndMs = 0;
  /** This run started during a shutdown. */
  #isLateLife = false;
  /** How long pods have that are ended for the shutdown, ms. */
  readonly #graces = new Map<string, number>();

  /** Pods that this shutdown ended, also in earlier runs, and since when, simulated ms. */
  readonly #ended = new Map<string, number>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    const { power } = scene.node;
    power.login.onAnnounced((isAnnounced) => this.#announced(isAnnounced));
    power.onOff((why) => this.#off(why));
  }

  reborn(uid: string): void {
    this.#due.delete(uid);
    this.#ended.delete(uid);
  }

  entry(entry: SimEntry): void {
    const { what, pod: ref, atMs } = entry;
    const { node } = this.#scene;
    if (what === lifeStarted || what === "ShutdownCancelled") {
      this.#begunMs = undefined;
      this.#graces.clear();
      if (!node.power.login.isPreparing) this.#due.clear();
    }
    if (what === lifeStarted) {
      this.#isLateLife = node.power.login.isPreparing;
      this.#lifeMs = atMs;
      this.#knownMs = undefined;
      this.#formerMs = this.#entryMs;
    }
    this.#entryMs = atMs;
    if (node.knowsAllPods) this.#knownMs ??= atMs;
    if (what === "Shutdown") this.#begunMs = atMs;
    if (what === "ShutdownGroupEnded") this.#groupEnded(Number(dataText(entry, "priority")), atMs);
    const pod = ref && this.#scene.pods.get(ref.uid);
    if (what === "Terminated" && pod !== undefined) this.#terminated(pod, atMs);
  }

  change({ type, podUid: uid, container, timeoutMs = 0 }: WorldChange): void {
    const { nowMs } = this.#scene.clock;
    const graceMs = this.#graces.get(uid);
    if (type === "stopping" && graceMs !== undefined && timeoutMs > graceMs) {
      this.#broken("no pod has more time than its group", `${uid} is given ${timeoutMs} ms of ${graceMs}`);
    }
    if (type === "sandboxStarted" && this.#isLateLife && this.#present !== undefined && !this.#isUnrecorded(uid)) {
      this.#broken("no pod starts during a shutdown", `${uid} begins in a life that begins in one`);
    }
    if (type === "sandboxStarted" && this.#present?.has(uid) === false && nowMs > this.#announcedMs + noticeMs) {
      this.#broken("no pod starts during a shutdown", `${uid} came after it was announced`);
    }
    if (type !== "exited" || container === undefined) return;
    this.#lastEndMs = nowMs;
    const dueMs = this.#dueOf(uid);
    if (dueMs !== undefined && nowMs > dueMs && this.#isSound()) {
      this.#broken("no pod has more time than its group", `${uid} ends ${nowMs - dueMs} ms late`);
    }
  }

  /** Only static pods start again: nobody else would make another. */
  disagreements(): readonly string[] {
    const { desired } = this.#scene.node;
    return this.#scene.node.pods().flatMap((known) => {
      const { uid } = known.view.ref;
      const pod = desired.get(uid);
      // One that exited with 0 has no reason in its status.
      const reason = endingOf(known)?.cause.code ?? known.status?.reason;
      const isEnded = reason === "Terminated" || reason === "NodeShutdown";
      const isStatic = pod !== undefined && isStaticPod(pod);
      return isEnded && isStatic ? [`static pod ${uid} is ${reason} after the shutdown`] : [];
    });
  }

  /** The disk could not store for this run that the shutdown has ended the pod: it runs until it is ended again. */
  #isUnrecorded(uid: string): boolean {
    const sinceMs = this.#ended.get(uid);
    return sinceMs !== undefined && this.#scene.node.diskFaultMs >= sinceMs - writtenMs;
  }

  #announced(isAnnounced: boolean): void {
    this.#ended.clear();
    this.#present = isAnnounced ? new Set(this.#scene.node.desired.keys()) : undefined;
    this.#announcedMs = this.#scene.clock.nowMs;
    this.#announcedOffsetMs = this.#wallOffset();
    this.#overMs = isAnnounced ? Number.POSITIVE_INFINITY : this.#scene.clock.nowMs;
    this.#groups.clear();
  }

  /** While podwright was down it could stop nothing. Undefined: not judged. */
  #dueOf(uid: string): number | undefined {
    const dueMs = this.#due.get(uid);
    if (dueMs === undefined || !this.#isLateLife) return dueMs;
    const isUnknown = this.#knownMs === undefined || this.#wallOffset() !== this.#wallOffsetMs;
    return isUnknown ? undefined : Math.max(dueMs, (this.#knownMs ?? 0) + continuedMs);
  }

  #terminated(pod: Pod, atMs: number): void {
    const { node, pods } = this.#scene;
    const own = groupOf(periods, pod);
    const period = periods[own];
    const begunMs = this.#begunMs;
    if (atMs > this.#overMs + noticeMs) {
      this.#broken(
        "a cancelled shutdown ends no more pods",
        `${pod.metadata.uid} goes ${atMs - this.#overMs} ms later`,
      );
    }
    if (this.#wallOffset() !== this.#wallOffsetMs) this.#groups.clear();
    this.#wallOffsetMs = this.#wallOffset();
    const groupMs = this.#groups.get(own) ?? atMs;
    this.#groups.set(own, groupMs);
    if (period === undefined || begunMs === undefined) {
      return this.#broken("shutdowns end pods only during a shutdown", `${pod.metadata.uid} goes without one`);
    }
    this.#ended.set(pod.metadata.uid, atMs);
    const graceMs = graceSecondsOf(period, pod) * 1000;
    this.#graces.set(pod.metadata.uid, Math.max(graceMs, leastGraceMs));
    this.#due.set(pod.metadata.uid, (this.#isLateLife ? groupMs : atMs) + graceMs + stopMs);
    if (!node.knowsAllPods) return;
    for (const { view } of node.pods()) {
      const other = pods.get(view.ref.uid);
      const group = other === undefined ? own : groupOf(periods, other);
      const hadMs = (periods[group]?.graceSeconds ?? 0) * 1000;
      const sinceMs = Math.min(this.#groups.get(group) ?? begunMs, begunMs);
      const runs = view.status.containers.some(({ id }) => this.#runs(id));
      if (group < own && runs && atMs - sinceMs < hadMs - noticeMs) {
        this.#broken("lower priorities end first", `${pod.metadata.uid} goes before ${view.ref.uid} has`);
      }
    }
  }

  /** Whatever the runtime does: podwright itself waits no longer. */
  #groupEnded(priority: number, atMs: number): void {
    const index = periods.findIndex((period) => period.priority === priority);
    const begunMs = this.#groups.get(index);
    if (begunMs === undefined || !this.#isKnownToNext(begunMs)) return;
    const startMs = this.#isLateLife ? (this.#knownMs ?? (this.#begunMs ?? atMs) + lateMs) : 0;
    const endMs = begunMs + (periods[index]?.graceSeconds ?? 0) * 1000;
    const isLate = atMs > Math.max(endMs + noticeMs, startMs + answerMs);
    if (isLate) this.#broken("no group has more than its time", `priority ${priority}: ${atMs - endMs} ms more`);
  }

  /** The run before could store when the group began, and the clock by which it is stored has not jumped. */
  #isKnownToNext(begunMs: number): boolean {
    const hasJumped = this.#wallOffset() !== this.#announcedOffsetMs;
    const isStored = this.#scene.node.diskFaultMs < begunMs - writtenMs && this.#formerMs > begunMs + storedMs;
    return !hasJumped && (!this.#isLateLife || isStored);
  }

  #off(why: OffReason): void {
    const { clock, world } = this.#scene;
    const begunMs = this.#begunMs;
    const runs = [...world.containers.values()].some(({ state }) => state === "running");
    if (why !== "time over" || runs || begunMs === undefined || !this.#isSound()) return;
    const sinceMs = clock.nowMs - Math.max(this.#lastEndMs, begunMs);
    if (sinceMs > releaseMs) this.#broken("a shutdown waits only for existing pods", `waits for ${sinceMs} ms`);
  }

  #wallOffset(): number {
    const { wallMs, nowMs } = this.#scene.clock;
    return wallMs - nowMs;
  }

  #runs(id: string): boolean {
    return this.#scene.world.containers.get(id)?.state === "running";
  }

  /** The machine, its runtime and podwright have worked without faults for a while. */
  #isSound(): boolean {
    const { node, clock } = this.#scene;
    // A new run does not wait for calls that hung before it.
    const isSinceStart = node.soundSinceMs <= this.#lifeMs;
    return node.callsAreTimely && (isSinceStart || node.soundSinceMs + recoveredMs < clock.nowMs);
  }
}

/** The pod's own grace period, or that of its group. */
function graceSecondsOf({ graceSeconds }: ShutdownPeriod, { metadata, spec }: Pod): number {
  const own = metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30;
  return Math.min(own, graceSeconds);
}
