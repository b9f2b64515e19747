import type { Pod } from "../api/pod.ts";
import type { MachineLook } from "../eviction/machine-state.ts";
import type { PodUsage, PodUsageReader } from "../eviction/pod-usage.ts";
import type { Observation, Observations } from "../eviction/pressure.ts";
import { resourceOf, type Signal, type StarvedResource } from "../eviction/thresholds.ts";
import type { SimClock } from "./clock.ts";
import type { SimContainer } from "./world-model.ts";

const gi = 2 ** 30;

/** The simulated machine's capacity of each resource. */
export const machineCapacity: Readonly<Record<StarvedResource, number>> = {
  memory: 8 * gi,
  "ephemeral-storage": 100 * gi,
  inodes: 1_000_000,
  pids: 30_000,
};

const watched: readonly Signal[] = [
  ...(["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "pid.available"] as const),
];

/** Usage assigned to a pod: an amount at a moment, and its growth per second. */
interface Use {
  readonly atMs: number;
  readonly amount: number;
  readonly perSecond: number;
}

/**
 * Memory, disk, inodes and processes of the simulated machine. Pods use them while one of their containers runs; all is
 * on one file system. Values are measured on request.
 */
export class SimMachineResources implements PodUsageReader {
  readonly #clock: SimClock;
  readonly #containers: () => Iterable<SimContainer>;
  readonly #uses = new Map<string, Use>();
  readonly #system = new Map<StarvedResource, number>();
  /** The last values shown to podwright. */
  shown: Observations = new Map();
  /** Called with each observation before podwright sees it. */
  onLook: (observations: Observations) => void = () => {};

  constructor(clock: SimClock, containers: () => Iterable<SimContainer>) {
    this.#clock = clock;
    this.#containers = containers;
  }

  /** Sets the pod's usage of a resource and its growth per second. */
  use(uid: string, resource: StarvedResource, amount: number, perSecond = 0): void {
    this.#uses.set(`${uid} ${resource}`, { atMs: this.#clock.nowMs, amount, perSecond });
  }

  /** Sets the usage by everything other than pods. */
  useElsewhere(resource: StarvedResource, amount: number): void {
    this.#system.set(resource, amount);
  }

  /** Resets all usage. */
  calm(): void {
    this.#uses.clear();
    this.#system.clear();
  }

  used(uid: string, resource: StarvedResource): number {
    const use = this.#uses.get(`${uid} ${resource}`);
    if (use === undefined || !this.#running().has(uid)) return 0;
    const seconds = (this.#clock.nowMs - use.atMs) / 1000;
    return Math.min(machineCapacity[resource], Math.trunc(use.amount + use.perSecond * seconds));
  }

  left(resource: StarvedResource): number {
    const pods = [...this.#running()].reduce((sum, uid) => sum + this.used(uid, resource), 0);
    return Math.max(0, machineCapacity[resource] - pods - (this.#system.get(resource) ?? 0));
  }

  async look(): Promise<MachineLook> {
    const observations = new Map(watched.map((signal) => [signal, this.#observe(signal)] as const));
    this.shown = observations;
    this.onLook(observations);
    return { observations, fileSystems: "one" };
  }

  async readRunning(pods: readonly Pod[]): Promise<ReadonlyMap<string, PodUsage>> {
    return this.#usages(pods);
  }

  async readStorage(pods: readonly Pod[]): Promise<ReadonlyMap<string, PodUsage>> {
    return this.#usages(pods);
  }

  #observe(signal: Signal): Observation {
    const resource = resourceOf(signal);
    return { available: BigInt(this.left(resource)), capacity: BigInt(machineCapacity[resource]) };
  }

  #usages(pods: readonly Pod[]): Map<string, PodUsage> {
    const running = this.#running();
    const present = pods.filter(({ metadata }) => running.has(metadata.uid));
    return new Map(present.map((pod) => [pod.metadata.uid, this.#usage(pod)]));
  }

  /** The first container accounts for the whole pod. */
  #usage({ metadata: { uid }, spec }: Pod): PodUsage {
    const [memoryBytes, bytes, inodes] = [
      this.used(uid, "memory"),
      this.used(uid, "ephemeral-storage"),
      this.used(uid, "inodes"),
    ];
    const name = spec.containers[0]?.name ?? "";
    const logs = { bytes: 0, inodes: 0 };
    const containers = [{ name, memoryBytes, rootfs: { bytes, inodes }, logs }];
    return { memoryBytes, processes: this.used(uid, "pids"), containers, volumes: [], ephemeralBytes: bytes };
  }

  #running(): Set<string> {
    const running = [...this.#containers()].filter(({ state }) => state === "running");
    return new Set(running.map(({ config }) => config.labels["io.kubernetes.pod.uid"] ?? ""));
  }
}
