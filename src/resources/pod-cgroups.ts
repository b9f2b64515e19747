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
/** Processes that were just killed leave a cgroup a moment later. */
const removeTries = 20;
const removePauseMs = 50;

/** One cgroup a pod, below that of its QoS class. */
export class PodCgroups {
  readonly #deps: PodCgroupsDependencies;
  readonly #config: PodCgroupsConfig;
  /** The values last written to each pod's cgroup in this run, by UID. */
  readonly #applied = new Map<string, CgroupResources>();
  /** The pods' cgroups created in this run, by UID. */
  readonly #made = new Map<string, string>();
  readonly #resources = new WeakMap<Pod, CgroupResources>();
  /** Pods whose cgroups are made at a time, be there ever so many that come at once: systemd is asked by a process each. */
  readonly #places = new Semaphore(8);

  constructor(deps: PodCgroupsDependencies, config: PodCgroupsConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** Makes or updates the pod's cgroup with its limits. */
  async ensure(pod: Pod): Promise<void> {
    using _place = await this.#places.acquire();
    await this.apply(pod, podCgroupResources(pod, this.#config));
    await this.#deps.classes.count(pod);
  }

  /**
   * Brings the cgroup of a running pod to its limits, unless known to have them: an earlier run may have ended in the
   * middle of a resize. A missing cgroup is no error.
   */
  async settle(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    if (isDeepStrictEqual(this.#applied.get(uid), this.resourcesOf(pod))) return;
    if (await this.#deps.cgroups.exists(this.#podPath(qosClass(pod), uid))) await this.ensure(pod);
  }

  /** Raises the limits of the pod's cgroup to what the pod may have by now; lowers none. */
  async raise(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    const wanted = this.resourcesOf(pod);
    if (isDeepStrictEqual(this.#applied.get(uid), wanted)) return;
    const higher = raised((await this.read(pod)).resources, wanted);
    if (Object.keys(higher).length > 0) await this.apply(pod, higher);
  }

  /** What the cgroup of a pod with these resources is to hold. */
  resourcesOf(pod: Pod): CgroupResources {
    const known = this.#resources.get(pod);
    if (known !== undefined) return known;
    const resources = podCgroupResources(pod, this.#config);
    this.#resources.set(pod, resources);
    return resources;
  }

  /** What the pod's cgroup holds at this moment. */
  async read(pod: Pod): Promise<CgroupState> {
    return await this.#deps.cgroups.read(this.#podPath(qosClass(pod), pod.metadata.uid));
  }

  /** What the cgroup of one of the pod's containers holds at this moment; undefined where there is none to be found. */
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
    // Its containers stay where they are, and the limits of the other hold none of them.
    invariant("a pod keeps its cgroup", path === made, () => `${uid}: ${path} after ${made}`);
    this.#made.set(uid, path);
    await this.#deps.cgroups.apply(path, resources);
    this.#applied.set(uid, { ...before, ...resources });
  }

  /** Removes the cgroup of a stopped pod, whatever its class was; processes that are left in it are killed. */
  async destroy(pod: PodRef): Promise<void> {
    this.#applied.delete(pod.uid);
    const made = this.#made.get(pod.uid);
    const paths = made === undefined ? qosClasses.map((qos) => this.#podPath(qos, pod.uid)) : [made];
    for (const path of paths) await this.#remove(path);
    this.#made.delete(pod.uid);
    await this.#deps.classes.forget(pod.uid);
  }

  /** UIDs of the pods that have a cgroup, for finding those that are gone. */
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

  /** Removes the tree, when no pod is left in it: for a node that ends, not for one that restarts. */
  async removeTree(): Promise<void> {
    if ((await this.podUids()).length > 0) return;
    await this.#deps.classes.remove();
  }

  /** Tries again what the kernel has refused, until the signal aborts. */
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

/** `ID`, `crio-ID`, `cri-containerd-ID.scope`; CRI-O has `crio-conmon-ID` beside it, which is not the container. */
function isCgroupOf(name: string, containerId: string): boolean {
  const bare = name.replace(/\.scope$/u, "");
  return bare === containerId || (bare.endsWith(`-${containerId}`) && !bare.includes("conmon"));
}

/** Those of the wanted values that are more than the present ones. −1 is no limit. */
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

/** Negative, zero or positive as the first limit allows less, as much or more than the second; −1 is no limit. */
export function compareLimits(a: number, b: number): number {
  const [first, second] = [a, b].map((limit) => (limit < 0 ? Number.POSITIVE_INFINITY : limit));
  return first === second ? 0 : (first ?? 0) - (second ?? 0);
}
