import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import type { Cgroups } from "../ports/cgroups.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Processes } from "../ports/processes.ts";
import { type CgroupDriver, cgroupPath, podCgroup, kubepodsCgroup, podUidOfCgroup, qosCgroup } from "./cgroup-names.ts";
import { kubepodsResources, podCgroupResources, type PodCgroupSettings, qosCgroupResources } from "./pod-resources.ts";
import { type QosClass, qosClass } from "./qos.ts";

export interface PodCgroupsConfig extends PodCgroupSettings {
  readonly driver: CgroupDriver;
  /** Parent of kubepods, `/` by default. */
  readonly cgroupRoot: string;
  readonly milliCpu: bigint;
  readonly memoryBytes: bigint;
}

const qosClasses: readonly QosClass[] = ["Guaranteed", "Burstable", "BestEffort"];
/** Processes that were just killed leave a cgroup a moment later. */
const removeTries = 20;
const removePauseMs = 50;

/** The cgroup tree above containers: kubepods, its QoS classes, and one cgroup a pod (census §5.7). */
export class PodCgroups {
  readonly #cgroups: Cgroups;
  readonly #processes: Processes;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #config: PodCgroupsConfig;
  readonly #burstable = new Map<string, Pod>();
  #treeMade: Promise<void> | undefined;

  constructor(cgroups: Cgroups, processes: Processes, clock: Clock, log: Logger, config: PodCgroupsConfig) {
    this.#cgroups = cgroups;
    this.#processes = processes;
    this.#clock = clock;
    this.#log = log;
    this.#config = config;
  }

  /** Makes or updates the pod's cgroup with its limits. */
  async ensure(pod: Pod): Promise<void> {
    this.#treeMade ??= this.#makeTree().catch((error: unknown) => {
      this.#treeMade = undefined;
      throw error;
    });
    await this.#treeMade;
    const qos = qosClass(pod);
    await this.#cgroups.apply(this.#podPath(qos, pod.metadata.uid), podCgroupResources(pod, this.#config));
    if (qos !== "Burstable") return;
    this.#burstable.set(pod.metadata.uid, pod);
    await this.#applyBurstable();
  }

  /** Removes the cgroup of a stopped pod, whatever its class was; processes that are left in it are killed. */
  async destroy(pod: PodRef): Promise<void> {
    for (const qos of qosClasses) await this.#remove(this.#podPath(qos, pod.uid));
    if (this.#burstable.delete(pod.uid)) await this.#applyBurstable();
  }

  /** UIDs of the pods that have a cgroup, for finding those that are gone. */
  async podUids(): Promise<string[]> {
    const uids: string[] = [];
    for (const qos of qosClasses) {
      const parent = cgroupPath(qosCgroup(this.#config.cgroupRoot, qos), this.#config.driver);
      for (const child of await this.#cgroups.children(parent)) {
        const uid = podUidOfCgroup(child, this.#config.driver);
        if (uid !== undefined) uids.push(uid);
      }
    }
    return uids;
  }

  /** Removes the tree, when no pod is left in it: for a node that ends, not for one that restarts. */
  async removeTree(): Promise<void> {
    if ((await this.podUids()).length > 0) return;
    await this.#cgroups.remove(cgroupPath(kubepodsCgroup(this.#config.cgroupRoot), this.#config.driver));
    this.#treeMade = undefined;
  }

  async #makeTree(): Promise<void> {
    const { cgroupRoot, driver } = this.#config;
    const { burstable, bestEffort } = qosCgroupResources([]);
    await this.#cgroups.apply(cgroupPath(kubepodsCgroup(cgroupRoot), driver), kubepodsResources(this.#config));
    await this.#cgroups.apply(cgroupPath(qosCgroup(cgroupRoot, "Burstable"), driver), burstable);
    await this.#cgroups.apply(cgroupPath(qosCgroup(cgroupRoot, "BestEffort"), driver), bestEffort);
  }

  async #applyBurstable(): Promise<void> {
    const path = cgroupPath(qosCgroup(this.#config.cgroupRoot, "Burstable"), this.#config.driver);
    await this.#cgroups.apply(path, qosCgroupResources([...this.#burstable.values()]).burstable);
  }

  async #remove(path: string): Promise<void> {
    for (let tries = 1; await this.#cgroups.exists(path); tries++) {
      for (const pid of await this.#cgroups.pids(path)) this.#processes.kill(pid, "SIGKILL");
      try {
        await this.#cgroups.remove(path);
        return;
      } catch (error) {
        if (tries === removeTries) throw error;
        this.#log.debug("a pod's cgroup is still in use", { path, error: errorMessage(error) });
        await this.#clock.sleep("processes to leave a pod's cgroup", removePauseMs);
      }
    }
  }

  #podPath(qos: QosClass, uid: string): string {
    return cgroupPath(podCgroup(this.#config.cgroupRoot, qos, uid), this.#config.driver);
  }
}
