import { isDeepStrictEqual } from "node:util";
import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { PodRef } from "../journal/entry.ts";
import type { CgroupResources, Cgroups, CgroupState } from "../ports/cgroups.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Processes } from "../ports/processes.ts";
import { type CgroupDriver, cgroupPath, podCgroup, podUidOfCgroup, qosCgroup } from "./cgroup-names.ts";
import { podCgroupResources, type PodCgroupSettings } from "./pod-resources.ts";
import type { QosCgroups } from "./qos-cgroups.ts";
import { type QosClass, qosClass } from "./qos.ts";

export interface PodCgroupsConfig extends PodCgroupSettings {
  readonly driver: CgroupDriver;
  /** Parent of kubepods. */
  readonly cgroupRoot: string;
}

export interface PodCgroupsDependencies {
  readonly cgroups: Cgroups;
  readonly classes: QosCgroups;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: Logger;
}

const qosClasses: readonly QosClass[] = ["Guaranteed", "Burstable", "BestEffort"];
/** Killed processes leave a cgroup with a delay. */
const removeTries = 20;
const removePauseMs = 50;

/** Pods' cgroups, below those of their QoS classes. */
export class PodCgroups {
  readonly #deps: PodCgroupsDependencies;
  readonly #config: PodCgroupsConfig;
  /** The values last written to each pod's cgroup in this run, by UID. */
  readonly #applied = new Map<string, CgroupResources>();
  /** The pods' cgroups created in this run, by UID. */
  readonly #made = new Map<string, string>();
  readonly #resources = new WeakMap<Pod, CgroupResources>();
  /** Limits concurrent creations: with systemd each starts a process. */
  readonly #places = new Semaphore(8);

  constructor(deps: PodCgroupsDependencies, config: PodCgroupsConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** Creates the pod's cgroup or updates its limits. */
  async ensure(pod: Pod): Promise<void> {
    await this.#limit(pod, podCgroupResources(pod, this.#config));
  }

  /**
   * Sets the limits of a running pod's cgroup unless this run already did: an earlier run may have ended in the middle
   * of a resize, and one that changes no running container has no other step. Memory that the pod uses is not taken away,
   * which would get its processes killed: that limit is lowered once it can be. Ignores a missing cgroup.
   */
  async settle(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    const applied = this.#applied.get(uid);
    const wanted = this.resourcesOf(pod);
    if (isDeepStrictEqual(applied, wanted)) return;
    if (!(await this.#deps.cgroups.exists(this.#podPath(qosClass(pod), uid)))) return;
    const possible = withUsedMemory(wanted, await this.read(pod));
    if (!isDeepStrictEqual(applied, possible)) await this.#limit(pod, possible);
  }

  async #limit(pod: Pod, resources: CgroupResources): Promise<void> {
    using _place = await this.#places.acquire();
    await this.apply(pod, resources);
    await this.#deps.classes.count(pod);
  }

  /** Raises the limits of the pod's cgroup to its current allocation; lowers none. */
  async raise(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    const wanted = this.resourcesOf(pod);
    if (isDeepStrictEqual(this.#applied.get(uid), wanted)) return;
    const higher = raised((await this.read(pod)).resources, wanted);
    if (Object.keys(higher).length > 0) await this.apply(pod, higher);
  }

  /** The desired values of a pod's cgroup. */
  resourcesOf(pod: Pod): CgroupResources {
    const known = this.#resources.get(pod);
    if (known !== undefined) return known;
    const resources = podCgroupResources(pod, this.#config);
    this.#resources.set(pod, resources);
    return resources;
  }

  /** The present values of the pod's cgroup. */
  async read(pod: Pod): Promise<CgroupState> {
    return await this.#deps.cgroups.read(this.#podPath(qosClass(pod), pod.metadata.uid));
  }

  /** The present values of a container's cgroup; undefined if it is not found. */
  async readContainer(pod: Pod, containerId: string): Promise<CgroupState | undefined> {
    const parent = this.#podPath(qosClass(pod), pod.metadata.uid);
    const name = (await this.#deps.cgroups.children(parent)).find((child) => isCgroupOf(child, containerId));
    return name === undefined ? undefined : await this.#deps.cgroups.read(`${parent}/${name}`);
  }

  /** Sets some of the values of the pod's cgroup. */
  async apply(pod: Pod, resources: CgroupResources): Promise<void> {
    await this.#deps.classes.ensure();
    const { uid } = pod.metadata;
    const before = this.#applied.get(uid);
    this.#applied.delete(uid);
    const path = this.#podPath(qosClass(pod), uid);
    const made = this.#made.get(uid) ?? path;
    // The containers stay in the old cgroup, where the new one's limits do not apply.
    invariant("a pod keeps its cgroup", path === made, () => `${uid}: ${path} after ${made}`);
    this.#made.set(uid, path);
    await this.#deps.cgroups.apply(path, resources);
    this.#applied.set(uid, { ...before, ...resources });
  }

  /** Removes the cgroup of a stopped pod of any class, and kills processes left in it. */
  async destroy(pod: PodRef): Promise<void> {
    this.#applied.delete(pod.uid);
    const made = this.#made.get(pod.uid);
    const paths = made === undefined ? qosClasses.map((qos) => this.#podPath(qos, pod.uid)) : [made];
    for (const path of paths) await this.#remove(path);
    this.#made.delete(pod.uid);
    await this.#deps.classes.forget(pod.uid);
  }

  /** UIDs of pods with a cgroup, to find orphaned cgroups. */
  async podUids(): Promise<PodUid[]> {
    const uids: PodUid[] = [];
    for (const qos of qosClasses) {
      const parent = cgroupPath(qosCgroup(this.#config.cgroupRoot, qos), this.#config.driver);
      for (const child of await this.#deps.cgroups.children(parent)) {
        const uid = podUidOfCgroup(child, this.#config.driver);
        if (uid !== undefined) uids.push(uid);
      }
    }
    return uids;
  }

  /** Removes the tree if it has no pods left: when a node ends for good, not for a restart. */
  async removeTree(): Promise<void> {
    if ((await this.podUids()).length > 0) return;
    await this.#deps.classes.remove();
  }

  /** Retries writes that the kernel refused, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#deps.classes.run(signal);
  }

  async #remove(path: string): Promise<void> {
    if ((await this.#deps.cgroups.removeEmpty(path)) !== "refused") return;
    for (let tries = 1; await this.#deps.cgroups.exists(path); tries++) {
      for (const pid of await this.#deps.cgroups.pids(path)) this.#deps.processes.kill(pid, "SIGKILL");
      try {
        await this.#deps.cgroups.remove(path);
        return;
      } catch (error) {
        if (tries === removeTries) throw error;
        this.#deps.log.debug("pod cgroup is still in use", { path, error: errorMessage(error) });
        await this.#deps.clock.sleep("processes to leave a pod's cgroup", removePauseMs);
      }
    }
  }

  #podPath(qos: QosClass, uid: PodUid): string {
    return cgroupPath(podCgroup(this.#config.cgroupRoot, qos, uid), this.#config.driver);
  }
}

/** `ID`, `crio-ID`, `cri-containerd-ID.scope`; not CRI-O's `crio-conmon-ID`. */
function isCgroupOf(name: string, containerId: string): boolean {
  const bare = name.replace(/\.scope$/u, "");
  return bare === containerId || (bare.endsWith(`-${containerId}`) && !bare.includes("conmon"));
}

/** The desired values, with the present limit of memory if the desired one is lower and in use. */
function withUsedMemory(wanted: CgroupResources, { resources, memoryUsageBytes }: CgroupState): CgroupResources {
  const { memoryLimitBytes: present } = resources;
  const limit = wanted.memoryLimitBytes;
  const isInUse = limit !== undefined && compareLimits(limit, present) < 0 && memoryUsageBytes >= limit;
  return isInUse ? { ...wanted, memoryLimitBytes: present } : wanted;
}

/** The desired values that exceed the present ones. −1: no limit. */
export function raised(present: CgroupResources, wanted: CgroupResources): CgroupResources {
  const { cpuShares, cpuQuotaMicroseconds, cpuPeriodMicroseconds, memoryLimitBytes } = wanted;
  return {
    ...(isMore(cpuShares, present.cpuShares) && { cpuShares }),
    ...(isMore(cpuQuotaMicroseconds, present.cpuQuotaMicroseconds) && { cpuQuotaMicroseconds, cpuPeriodMicroseconds }),
    ...(isMore(memoryLimitBytes, present.memoryLimitBytes) && { memoryLimitBytes }),
  };
}

function isMore(wanted: number | undefined, present: number | undefined): wanted is number {
  return wanted !== undefined && compareLimits(wanted, present ?? -1) > 0;
}

/** Orders limits from low to high; −1 (no limit) is the highest. */
export function compareLimits(a: number, b: number): number {
  const [first, second] = [a, b].map((limit) => (limit < 0 ? Number.POSITIVE_INFINITY : limit));
  return first === second ? 0 : (first ?? 0) - (second ?? 0);
}
