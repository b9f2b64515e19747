import type { Pod } from "../api/pod.ts";
import { Emitter } from "../base/emitter.ts";
import type { FileSystems } from "../eviction/file-systems.ts";
import type { MachineLook } from "../eviction/machine-state.ts";
import type { LayersLeft, PodUsage, PodUsageReader } from "../eviction/pod-usage.ts";
import type { Observation, Observations } from "../eviction/pressure.ts";
import { resourceOf, type Signal, type StarvedResource } from "../eviction/thresholds.ts";
import type { SimClock } from "./clock.ts";
import { SimLayers } from "./layers.ts";
import { SimRandom } from "./random.ts";
import type { RuntimeWorld } from "./runtime-world.ts";

const gi = 2 ** 30;

/** The simulated machine's capacity of each resource. */
export const machineCapacity: Readonly<Record<StarvedResource, number>> = {
  memory: 8 * gi,
  "ephemeral-storage": 100 * gi,
  inodes: 1_000_000,
  pids: 30_000,
};

/** Of a disk, for each dead container. */
const deadPart = 0.01;

const watched: readonly Signal[] = [
  ...(["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "pid.available"] as const),
];

/** The same where images have a disk of their own. */
const watchedApart: readonly Signal[] = ["imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree"];

/** A disk. Resources other than the disks' are the node's. */
type Place = "nodefs" | "imagefs";

const signalOf: Readonly<Record<StarvedResource, (place: Place) => Signal>> = {
  memory: () => "memory.available",
  "ephemeral-storage": (place) => `${place}.available`,
  inodes: (place) => `${place}.inodesFree`,
  pids: () => "pid.available",
};

function isOfDisk(resource: StarvedResource): boolean {
  return resource === "ephemeral-storage" || resource === "inodes";
}

/** The runtime measures writable layers at this interval. */
const measuredMs = 10_000;

/** Usage assigned to a pod: an amount at a moment, and its growth per second. */
interface Use {
  readonly atMs: number;
  readonly amount: number;
  readonly perSecond: number;
  /** What was in force before. */
  readonly before?: Use | undefined;
}

/**
 * Memory, disk, inodes and processes of the simulated machine. Pods use them while one of their containers runs, their
 * writable layers until some seconds after their last container was removed, images and dead containers until they are
 * removed. All is on one file system, or images have their own, with or without the layers. Values are measured on request.
 */
export class SimMachineResources implements PodUsageReader {
  readonly #clock: SimClock;
  readonly #world: Pick<RuntimeWorld, "containers" | "images">;
  readonly #uses = new Map<string, Use>();
  /** By place and resource. */
  readonly #system = new Map<string, number>();
  /** Where images and writable layers are. */
  fileSystems: FileSystems = "one";
  /** Whether podwright is told: the runtime may not answer yet. */
  tellsFileSystems = true;
  /** The last values shown to podwright. */
  shown: Observations = new Map();
  readonly #looks = new Emitter<Observations>();
  /** Disks that do not answer, and pods whose storage does not. */
  readonly stalled = new Set<Place>();
  readonly stalledPods = new Set<string>();
  /** Until when nobody's storage can be measured: questions for it wait, as on a runtime that hangs. */
  #hangs: { readonly over: Promise<void>; readonly end: () => void } | undefined;
  readonly layers: SimLayers;
  /** Pods that cannot be measured. */
  readonly #hidden = new Set<string>();
  /** When the usage of each pod was last hidden, or shown again, simulated ms. */
  readonly #hiddenMs = new Map<string, number>();

  constructor(clock: SimClock, world: Pick<RuntimeWorld, "containers" | "images" | "onChange">) {
    this.#clock = clock;
    this.#world = world;
    this.layers = new SimLayers(clock, world, (uid, resource) =>
      this.#layersPart(uid, this.#amount(uid, resource, clock.nowMs)),
    );
  }

  /** Sets the pod's usage of a resource and its growth per second. */
  use(uid: string, resource: StarvedResource, amount: number, perSecond = 0): void {
    const key = `${uid} ${resource}`;
    const last = this.#uses.get(key);
    const before = last && { atMs: last.atMs, amount: last.amount, perSecond: last.perSecond };
    this.#uses.set(key, { atMs: this.#clock.nowMs, amount, perSecond, before });
  }

  /** Sets the usage by everything other than pods, of a disk on one of them. */
  useElsewhere(resource: StarvedResource, amount: number, place: Place = "nodefs"): void {
    this.#system.set(`${place} ${resource}`, Math.trunc(amount));
  }

  /** From now on the pods cannot be measured. */
  hide(uids: readonly string[]): void {
    for (const uid of uids) {
      this.#hidden.add(uid);
      this.#hiddenMs.set(uid, this.#clock.nowMs);
    }
  }

  show(uids: Iterable<string>): void {
    for (const uid of uids) if (this.#hidden.delete(uid)) this.#hiddenMs.set(uid, this.#clock.nowMs);
  }

  showAll(): void {
    this.show([...this.#hidden]);
  }

  /** Since when the pod cannot be measured, or can be, simulated ms. */
  visibility(uid: string): { readonly isHidden: boolean; readonly sinceMs: number } {
    return { isHidden: this.#hidden.has(uid), sinceMs: this.#hiddenMs.get(uid) ?? 0 };
  }

  /** Resets all usage. */
  calm(): void {
    this.showAll();
    this.stalled.clear();
    this.stalledPods.clear();
    this.letStorageAnswer();
    this.tellsFileSystems = true;
    this.#uses.clear();
    this.#system.clear();
    this.layers.calm();
  }

  hangStorage(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#hangs ??= { over: promise, end: resolve };
  }

  letStorageAnswer(): void {
    this.#hangs?.end();
    this.#hangs = undefined;
  }

  get storageHangs(): boolean {
    return this.#hangs !== undefined;
  }

  used(uid: string, resource: StarvedResource): number {
    return this.#running().has(uid) ? this.#amount(uid, resource, this.#clock.nowMs) : 0;
  }

  /** What the pod uses of a signal's resource, on its disk. */
  usedOf(uid: string, signal: Signal): number {
    return this.#running().has(uid) ? this.#usedBy(uid, signal) : 0;
  }

  /** The same of one that runs. */
  #usedBy(uid: string, signal: Signal): number {
    const resource = resourceOf(signal);
    const used = this.#amount(uid, resource, this.#clock.nowMs);
    if (!isOfDisk(resource)) return used;
    const place = this.placeOf(signal);
    const layers = this.#layersPart(uid, used);
    return (place === this.#home("layers") ? layers : 0) + (place === "nodefs" ? used - layers : 0);
  }

  /** What a pod has in its logs and volumes, which are on the node's own disk wherever layers are. */
  besideLayers(uid: string, resource: StarvedResource): number {
    const used = this.used(uid, resource);
    return used - this.#layersPart(uid, used);
  }

  left(resource: StarvedResource, place: Place = "nodefs"): number {
    const about = signalOf[resource](place);
    const pods = [...this.#running()].reduce((sum, uid) => sum + this.#usedBy(uid, about), 0);
    const held = place === this.#home("layers") ? this.layers.held(resource) : 0;
    const others = this.#system.get(`${place} ${resource}`) ?? 0;
    return Math.max(0, machineCapacity[resource] - pods - held - others - this.#garbage(resource, place));
  }

  /** The disk that a signal is about. */
  placeOf(signal: Signal): Place {
    if (signal.startsWith("containerfs.")) return this.#home("layers");
    return signal.startsWith("imagefs.") ? this.#home("images") : "nodefs";
  }

  /** What removed containers of a pod still hold of a signal's resource. */
  heldBy(uid: string, signal: Signal): number {
    return this.placeOf(signal) === this.#home("layers") ? this.layers.heldBy(uid, resourceOf(signal)) : 0;
  }

  /** Of what a pod uses, the part in its containers' writable layers; the rest is in its volumes. */
  #layersPart(uid: string, amount: number): number {
    const part = this.fileSystems === "one" ? 0.8 : SimRandom.named(2, uid).pick([0.1, 0.8]);
    return Math.trunc(amount * part);
  }

  #home(part: "layers" | "images"): Place {
    if (this.fileSystems === "one") return "nodefs";
    return part === "images" || this.fileSystems === "imagefs" ? "imagefs" : "nodefs";
  }

  /** Calls back with each observation before podwright sees it. */
  onLook(listener: (observations: Observations) => void): Disposable {
    return this.#looks.on(listener);
  }

  async look(): Promise<MachineLook> {
    const all = this.fileSystems === "one" ? watched : [...watched, ...watchedApart];
    const isOfRuntime = (signal: Signal): boolean => /^(?:image|container)fs\./u.test(signal);
    const isStalled = (signal: Signal): boolean =>
      isOfDisk(resourceOf(signal)) && this.stalled.has(this.placeOf(signal));
    const wanted = all.filter((signal) => !isStalled(signal) && (this.tellsFileSystems || !isOfRuntime(signal)));
    const fileSystems = this.tellsFileSystems && this.stalled.size === 0 ? this.fileSystems : undefined;
    const observations = new Map(wanted.map((signal) => [signal, this.#observe(signal)] as const));
    this.shown = observations;
    this.#looks.emit(observations);
    return { observations, fileSystems, unmeasured: new Map([...this.stalled].map((place) => [place, "stalls"])) };
  }

  async readRunning(pods: readonly Pod[]): Promise<ReadonlyMap<string, PodUsage>> {
    return this.#usages(pods, this.#clock.nowMs);
  }

  /** What is not measured anew is what the runtime measured last. */
  async readStorage(pods: readonly Pod[], how: "anew" | "kept" | "limits"): Promise<ReadonlyMap<string, PodUsage>> {
    await this.#hangs?.over;
    const { nowMs } = this.#clock;
    const answering = pods.filter(({ metadata }) => !this.stalledPods.has(metadata.uid));
    const usages = this.#usages(answering, how === "anew" ? nowMs : nowMs - (nowMs % measuredMs));
    // What dead containers hold is found when they are removed.
    const empty = answering.filter(({ metadata }) => !usages.has(metadata.uid) && !this.#hidden.has(metadata.uid));
    return new Map([...usages, ...empty.map((pod) => [pod.metadata.uid, emptyUsage(pod)] as const)]);
  }

  /** Others measure nothing here. */
  onMeasured(): Disposable {
    return { [Symbol.dispose]: () => {} };
  }

  async layersLeft(containers: readonly string[]): Promise<LayersLeft> {
    return this.layers.left(containers);
  }

  /** What a pod uses if it runs. */
  #amount(uid: string, resource: StarvedResource, atMs: number): number {
    const last = this.#uses.get(`${uid} ${resource}`);
    const use = last !== undefined && atMs < last.atMs ? last.before : last;
    if (use === undefined) return 0;
    const seconds = Math.max(0, atMs - use.atMs) / 1000;
    return Math.min(machineCapacity[resource], Math.trunc(use.amount + use.perSecond * seconds));
  }

  /** What images and dead containers use. */
  #garbage(resource: StarvedResource, place: Place): number {
    if (!isOfDisk(resource)) return 0;
    const { containers, images } = this.#world;
    const dead = [...containers.values()].filter(({ state }) => state === "exited").length;
    const ofDead = place === this.#home("layers") ? Math.min(0.2, dead * deadPart) : 0;
    const ofImages = place === this.#home("images") ? images.part : 0;
    return Math.trunc(machineCapacity[resource] * (ofImages + ofDead));
  }

  #observe(signal: Signal): Observation {
    const resource = resourceOf(signal);
    return {
      available: BigInt(this.left(resource, this.placeOf(signal))),
      capacity: BigInt(machineCapacity[resource]),
    };
  }

  #usages(pods: readonly Pod[], storageMs: number): Map<string, PodUsage> {
    const running = this.#running();
    const present = pods.filter(({ metadata }) => running.has(metadata.uid));
    return new Map(present.map((pod) => [pod.metadata.uid, this.#usage(pod, storageMs)]));
  }

  /** The first container accounts for the whole pod. */
  #usage({ metadata: { uid }, spec }: Pod, storageMs: number): PodUsage {
    const [memoryBytes, bytes, inodes] = [
      this.used(uid, "memory"),
      this.#amount(uid, "ephemeral-storage", storageMs),
      this.#amount(uid, "inodes", storageMs),
    ];
    const name = spec.containers[0]?.name ?? "";
    if (this.#hidden.has(uid)) return { containers: [{ name }], volumes: [], ephemeralBytes: bytes };
    const rootfs = { bytes: this.#layersPart(uid, bytes), inodes: this.#layersPart(uid, inodes) };
    const logs = { bytes: bytes - rootfs.bytes, inodes: inodes - rootfs.inodes };
    const containers = [{ name, memoryBytes, rootfs, logs }];
    return { memoryBytes, processes: this.used(uid, "pids"), containers, volumes: [], ephemeralBytes: bytes };
  }

  #running(): Set<string> {
    const running = [...this.#world.containers.values()].filter(({ state }) => state === "running");
    return new Set(running.map(({ config }) => config.labels["io.kubernetes.pod.uid"] ?? ""));
  }
}

/** Of a pod that does not run. */
function emptyUsage({ spec }: Pod): PodUsage {
  const none = { bytes: 0, inodes: 0 };
  const containers = [{ name: spec.containers[0]?.name ?? "", rootfs: none, logs: none }];
  return { containers, volumes: [], ephemeralBytes: 0 };
}
