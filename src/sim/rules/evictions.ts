import * as z from "zod";
import { isCriticalPod } from "../../api/pod-kind.ts";
import type { Pod } from "../../api/pod.ts";
import { isOfDisk, withContainerFs } from "../../eviction/file-systems.ts";
import { isMet, type Observations, type Pressure } from "../../eviction/pressure.ts";
import { resourceOf, type Signal, signals, type StarvedResource } from "../../eviction/thresholds.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import { podRequests } from "../../resources/pod-totals.ts";
import type { SimEntry } from "../life/node.ts";
import { isOverfull } from "../life/quota-steps.ts";
import type { WorldChange } from "../world-model.ts";
import { dataText } from "./entry-data.ts";
import { mayBeEvicted } from "./evictable.ts";
import { Shortages } from "./shortages.ts";
import { type Break, recoveredMs, type Rule, type Scene } from "./rule.ts";
import { podsDirectory } from "../life/recorded.ts";

/** How long an evicted pod is waited for after its grace period before another is evicted. */
const cleanupMs = 30_000;
/** More than measuring all pods takes. */
const measuredMs = 30_000;
/** How long evictions for the node wait for unknown pods. */
const unknownMs = 60_000;
/** How long those for the node's own disk wait for where images are, and how long they may take then. */
const layoutMs = 60_000;
const defendedMs = 60_000;

const pressureOf: Readonly<Record<StarvedResource, Pressure>> = {
  memory: "MemoryPressure",
  "ephemeral-storage": "DiskPressure",
  inodes: "DiskPressure",
  pids: "PIDPressure",
};

/** Actions that release what a pod that has stopped still holds. */
const releasing: ReadonlySet<EntryName> = new Set(["UnmountVolumes", "RemoveCgroup"]);
/** Volumes whose content belongs to the node: others may have to wait for their driver. */
const ownVolumes = ["configmap", "downward-api", "empty-dir", "projected", "secret"];

const Checkpoint = z.object({ end: z.object({ code: z.string() }).optional() });

/** Whether the disk says that the pod was evicted, which is all that the next run knows of it. */
function isRecorded(uid: string, { node }: Scene): boolean {
  const text = node.files.textOf(`${podsDirectory}/${uid}/podwright.json`);
  try {
    return text !== undefined && Checkpoint.parse(JSON.parse(text)).end?.code === "Evicted";
  } catch {
    return false;
  }
}

/** An evicted pod. Simulated ms. */
interface Victim {
  readonly uid: string;
  readonly atMs: number;
  /** Until when it is waited for. */
  readonly untilMs: number;
  /** When the last part of it ended. */
  endMs: number;
}

/** What an evicted pod still holds of the node. */
function leftOf(uid: string, { world, node }: Scene): string | undefined {
  const container = [...world.containers.values()].find(
    ({ state, config }) => state === "running" && config.labels["io.kubernetes.pod.uid"] === uid,
  );
  if (container !== undefined) return `the container ${container.id}`;
  const volumes = ownVolumes.flatMap((type) =>
    node.files.namesIn(`${podsDirectory}/${uid}/volumes/kubernetes.io~${type}`),
  );
  if (volumes.length > 0) return `the volumes ${volumes.join(", ")}`;
  return [...node.cgroups.applied.keys()].some((path) => path.endsWith(`/pod${uid}`)) ? "its cgroup" : undefined;
}

/**
 * The node evicts pods only under pressure, one after the other, in ranking order, and never a critical one; conditions
 * hold for their transition period and end. Judged by the observations that podwright was given.
 */
export class Evictions implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** The pods that were evicted last, for the node or for limits of their own, also by earlier runs. */
  #victims: readonly Victim[] = [];
  readonly #shortages = new Shortages();
  /** Simulated ms at which podwright last observed a shortage, in this run. */
  readonly #shortMs = new Map<Pressure, number>();
  #held: readonly string[] = [];
  #lifeMs = 0;
  /** When podwright last observed the machine, simulated ms. */
  #lookedMs = 0;
  /** Whether this run was told where images are. */
  #isLayoutKnown = false;
  /** Since when it was short of its own disk without that, and since when it has evicted nobody; simulated ms. */
  #undefendedMs: number | undefined;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    scene.node.resources.onLook((observations) => this.#shown(observations));
  }

  entry(entry: SimEntry): void {
    const { kind, what, atMs, pod } = entry;
    if (kind === "outcome" && releasing.has(what)) this.#ends(pod?.uid);
    if (what === lifeStarted) this.#begin(atMs);
    if (what === "NodePressureChanged") this.#conditions(atMs);
    if (what === "PodEvicted") this.#evicted(entry);
  }

  reborn(uid: string): void {
    this.#victims = this.#victims.filter((victim) => victim.uid !== uid);
  }

  change({ type, podUid }: WorldChange): void {
    if (type === "exited") this.#ends(podUid);
  }

  #ends(uid: string | undefined): void {
    for (const victim of this.#victims) if (victim.uid === uid) victim.endMs = this.#scene.clock.nowMs;
  }

  atRest(): void {
    const { pressures } = this.#scene.node;
    if (pressures.length > 0) this.#broken("pressure ends", `still held: ${pressures.join(", ")}`);
  }

  #begin(atMs: number): void {
    this.#lifeMs = atMs;
    this.#victims = this.#victims.filter(({ uid }) => isRecorded(uid, this.#scene));
    this.#held = [];
    this.#shortMs.clear();
    this.#shortages.clear();
    this.#isLayoutKnown = false;
    this.#undefendedMs = undefined;
  }

  #shown(observations: Observations): void {
    this.#lookedMs = this.#scene.clock.nowMs;
    const { nowMs } = this.#scene.clock;
    this.#isLayoutKnown ||= observations.has("imagefs.available");
    this.#defends(observations, nowMs);
    for (const { signal } of this.#shortages.note(this.#thresholds(), observations, nowMs)) {
      this.#shortMs.set(pressureOf[resourceOf(signal)], nowMs);
    }
  }

  /** A runtime that never says where images are does not let the node's own disk fill up. */
  #defends(observations: Observations, nowMs: number): void {
    const { node } = this.#scene;
    const about = "nodefs.available";
    const isShort = this.#thresholds().some((each) => each.signal === about && isMet(each, observations, false));
    // What waits for a confirmation, or for another end, is judged elsewhere.
    const waits = node.evictions?.asks === true || this.#victims.some(({ untilMs }) => nowMs < untilMs);
    const excused = waits || !node.callsAreTimely || !node.knowsAllPods;
    const isHelpless = !this.#others("", "syncing").some((pod) => this.#gains(pod.metadata.uid, about, nowMs));
    if (this.#isLayoutKnown || !isShort || excused || isHelpless) {
      this.#undefendedMs = undefined;
      return;
    }
    this.#undefendedMs ??= nowMs;
    if (nowMs - this.#undefendedMs < layoutMs + defendedMs) return;
    this.#broken("the node's own disk is defended", "nobody goes for nodefs.available");
  }

  /** Whether a pod that has run for a while surely has something on the node's own disk. */
  #gains(uid: string, about: Signal, atMs: number): boolean {
    const { resources } = this.#scene.node;
    const { isHidden, sinceMs } = resources.visibility(uid);
    const isSeen = !isHidden && sinceMs < atMs - measuredMs && !resources.stalledPods.has(uid);
    return isSeen && this.#hasRunFor(uid, measuredMs, atMs) && resources.besideLayers(uid, resourceOf(about)) > 0;
  }

  #thresholds() {
    return withContainerFs(this.#scene.node.evictions?.thresholds ?? [], this.#scene.node.resources.fileSystems);
  }

  /** Called before the node reports its new conditions. */
  #conditions(atMs: number): void {
    const { node } = this.#scene;
    const { transitionMs = 0 } = node.evictions ?? {};
    const { pressures } = node;
    for (const pressure of this.#held) {
      const shortMs = this.#shortMs.get(pressure as Pressure) ?? Number.NEGATIVE_INFINITY;
      const isGone = !pressures.includes(pressure as Pressure);
      if (isGone && atMs - shortMs < transitionMs) {
        this.#broken("conditions hold for the transition period", `${pressure} ended after ${atMs - shortMs} ms`);
      }
    }
    this.#held = [...pressures];
  }

  #evicted(entry: SimEntry): void {
    const uid = entry.pod?.uid ?? "";
    const pod = this.#scene.pods.get(uid) ?? this.#scene.node.desired.get(uid);
    if (pod === undefined) return this.#broken("only pods of the node are evicted", uid);
    if (isCriticalPod(pod)) this.#broken("critical pods are never evicted", uid);
    // It is told before the pod stops.
    const known = this.#scene.node.pods().find(({ view }) => view.ref.uid === uid);
    if (known && !mayBeEvicted(known, entry.atMs)) this.#broken("evictions stop pods sooner", `${uid} stops anyway`);
    const about = signals.find((signal) => signal === dataText(entry, "signal"));
    if (about === undefined) void this.#forLimit(pod);
    else this.#forNode(pod, about, entry);
    const graceMs = about === undefined ? 1000 : this.#graceMs(pod, about);
    const { atMs } = entry;
    const left = this.#victims.filter(({ untilMs }) => atMs < untilMs);
    this.#victims = [...left, { uid, atMs, untilMs: atMs + graceMs + cleanupMs, endMs: 0 }];
  }

  async #forLimit(pod: Pod): Promise<void> {
    const {
      metadata: { uid },
      spec,
    } = pod;
    if (await isOverfull(this.#scene, pod, false)) return;
    const limit = Number(spec.containers[0]?.resources?.limits?.["ephemeral-storage"] ?? Infinity);
    const used = this.#scene.node.resources.used(uid, "ephemeral-storage");
    if (used <= limit) this.#broken("limits evict only pods above them", `${uid} uses ${used} of ${limit}`);
  }

  #forNode(pod: Pod, about: Signal, { atMs, message }: SimEntry): void {
    const { node } = this.#scene;
    const { uid } = pod.metadata;
    const isShort = this.#thresholds().some((each) => each.signal === about && isMet(each, node.resources.shown, true));
    if (!isShort) this.#broken("no evictions after pressure", `${uid} goes for ${about}`);
    const isDue = this.#thresholds().some((each) => {
      return each.signal === about && atMs - (this.#shortages.sinceMs(each) ?? atMs) >= each.graceMs;
    });
    if (!isDue) this.#broken("soft thresholds are met for their grace period", `${uid} goes for ${about}`);
    this.#checkGrace(pod, about);
    const isInPart = isOfDisk(about) && !this.#isLayoutKnown;
    if (isInPart && (!about.startsWith("nodefs.") || atMs - this.#lifeMs < layoutMs)) {
      this.#broken("no evictions for a disk of which not all is known", `${uid} goes for ${about}`);
    }
    const isVisible = !node.resources.visibility(uid).isHidden && !node.resources.stalledPods.has(uid);
    if (isInPart && isVisible && node.resources.besideLayers(uid, resourceOf(about)) === 0) {
      this.#broken("no pod goes on absence of data", `${uid} may have nothing on the disk of ${about}`);
    }
    if (!node.knowsAllPods && atMs - this.#lifeMs < unknownMs) {
      this.#broken("no evictions before all pods are known", uid);
    }
    for (const victim of this.#victims) if (atMs < victim.untilMs) this.#after(victim, uid, about, atMs);
    // Its place follows from what was measured before, or from a part.
    if (isInPart || node.resources.stalledPods.has(uid)) return;
    this.#onData(pod, about, atMs);
    if (message.includes("usage could not be measured now")) return;
    const before = this.#before(pod, about, atMs);
    if (before !== undefined) this.#broken("evictions follow the ranking", `${uid} goes for ${about} before ${before}`);
  }

  /** What must be true of an earlier victim when another pod goes. */
  #after(victim: Victim, uid: string, about: Signal, atMs: number): void {
    const left = leftOf(victim.uid, this.#scene);
    if (left !== undefined) this.#broken("one eviction at a time", `${uid} goes while ${victim.uid} has ${left}`);
    if (this.#lookedMs < victim.endMs) {
      this.#broken("evictions use current observations", `${uid} goes by what was seen before ${victim.uid} was gone`);
    }
    // What an earlier run has removed from the runtime, this one does not know.
    if (victim.atMs >= this.#lifeMs) this.#sufficed(uid, victim.uid, about, atMs);
  }

  /** A second for a hard threshold. For a soft one the pod's own time, as far as it is granted. */
  #graceMs(pod: Pod, about: Signal): number {
    return this.#isHard(about, true) ? 1000 : Math.max(1, this.#grantedSeconds(pod)) * 1000;
  }

  #isHard(about: Signal, withReclaim: boolean): boolean {
    const { shown } = this.#scene.node.resources;
    return this.#thresholds().some((each) => {
      return each.signal === about && each.graceMs === 0 && isMet(each, shown, withReclaim);
    });
  }

  #grantedSeconds({ spec }: Pod): number {
    return Math.min(this.#scene.node.evictions?.maxPodGraceSeconds ?? 0, spec.terminationGracePeriodSeconds ?? 30);
  }

  /** Called before the pod stops. */
  #checkGrace(pod: Pod, about: Signal): void {
    const { clock, node } = this.#scene;
    const isHard = this.#isHard(about, false);
    // Whether a hard threshold was met before is not known here.
    if (!isHard && this.#isHard(about, true)) return;
    const granted = this.#grantedSeconds(pod);
    const wanted = isHard ? 1 : granted;
    // While a raised hard threshold waits for its confirmation, a soft one has its turn.
    const others = node.evictions?.asks === true ? [granted] : [];
    const { uid } = pod.metadata;
    clock.schedule("an evicted pod to begin to stop", 0, () => {
      const state = node.pods().find(({ view }) => view.ref.uid === uid)?.view.state;
      if (state?.kind !== "terminating") return;
      const { graceSeconds } = state.ending;
      if (graceSeconds === wanted || others.includes(graceSeconds)) return;
      this.#broken("evicted pods get their grace period", `${uid} has ${graceSeconds} s, not ${wanted} s`);
    });
  }

  /** No other pod goes while the layers of the last one are still to be freed, if that suffices. */
  #sufficed(uid: string, last: string, about: Signal, atMs: number): void {
    const { node } = this.#scene;
    const soundMs = Math.max(node.soundSinceMs, node.removalFaultMs) + recoveredMs;
    if (!node.callsAreTimely || !node.knowsAllPods || soundMs > atMs) return;
    const { resources } = node;
    const held = BigInt(resources.heldBy(last, about));
    const seen = resources.shown.get(about) ?? resources.shown.get(about.replace("containerfs", "nodefs") as Signal);
    if (held === 0n || seen === undefined) return;
    const freed: Observations = new Map([[about, { ...seen, available: seen.available + held }]]);
    if (this.#thresholds().some((each) => each.signal === about && isMet(each, freed, true))) return;
    this.#broken("no second victim where the first sufficed", `${uid} goes for ${about} before ${last} is freed`);
  }

  /** A pod whose usage is unknown does not go while there is another one; for processes, one of no higher priority. */
  #onData({ metadata: { uid }, spec: { priority = 0 } }: Pod, about: Signal, atMs: number): void {
    const { node } = this.#scene;
    if (!this.#isHidden(uid, atMs)) return;
    const known = this.#others(uid, "all").find((other) => {
      if (about === "pid.available" && (other.spec.priority ?? 0) > priority) return false;
      const { isHidden, sinceMs } = node.resources.visibility(other.metadata.uid);
      return !isHidden && sinceMs < atMs - measuredMs && this.#hasRunFor(other.metadata.uid, measuredMs, atMs);
    });
    if (known !== undefined) {
      this.#broken("no pod goes on absence of data", `${uid} goes for ${about} before ${known.metadata.uid}`);
    }
  }

  /** It could not be measured for so long that nothing older can count. */
  #isHidden(uid: string, atMs: number): boolean {
    const { isHidden, sinceMs } = this.#scene.node.resources.visibility(uid);
    return isHidden && sinceMs < atMs - measuredMs;
  }

  #hasRunFor(uid: string, forMs: number, atMs: number): boolean {
    return [...this.#scene.world.containers.values()].some(({ state, startedMs, config }) => {
      return state === "running" && startedMs < atMs - forMs && config.labels["io.kubernetes.pod.uid"] === uid;
    });
  }

  /** Other pods that podwright could evict. @param which those of which it is certain, or all */
  #others(uid: string, which: "syncing" | "all"): Pod[] {
    return this.#scene.node.pods().flatMap((known) => {
      const { pod, state, status } = known.view;
      const runs = status.containers.some((each) => each.state === "running");
      const mayGo = mayBeEvicted(known, this.#scene.clock.nowMs) && (which === "all" || state.kind === "syncing");
      return mayGo && runs && pod !== undefined && !isCriticalPod(pod) && pod.metadata.uid !== uid ? [pod] : [];
    });
  }

  /** A pod that should have been evicted before this one, according to the machine. */
  #before(pod: Pod, about: Signal, atMs: number): string | undefined {
    const known = this.#scene.node.pods();
    // What counts are its allocated resources (as upstream), also while more is requested.
    const allocated = known.find(({ view }) => view.pod?.metadata.uid === pod.metadata.uid)?.view.pod ?? pod;
    const own = this.#place(allocated, about);
    return this.#others(pod.metadata.uid, "all").find((other) => {
      const { resources } = this.#scene.node;
      const { isHidden, sinceMs } = resources.visibility(other.metadata.uid);
      if (isHidden || sinceMs > atMs - measuredMs || resources.stalledPods.has(other.metadata.uid)) return false;
      const place = this.#place(other, about);
      // podwright may know nothing about a pod without usage.
      if (place.used === 0) return false;
      if (place.exceeds !== own.exceeds) return place.exceeds;
      if (place.priority !== own.priority) return place.priority < own.priority;
      return place.over > own.over;
    })?.metadata.uid;
  }

  #place(pod: Pod, about: Signal) {
    const resource = resourceOf(about);
    const used = this.#scene.node.resources.usedOf(pod.metadata.uid, about);
    const asked =
      resource === "memory" || resource === "ephemeral-storage" ? podRequests(pod).get(resource) : undefined;
    const request = Number(asked?.value() ?? 0n);
    const exceeds = resource !== "pids" && used > request;
    return { used, exceeds, priority: pod.spec.priority ?? 0, over: used - request };
  }
}
