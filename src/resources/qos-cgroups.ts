import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { Semaphore } from "../base/semaphore.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { CgroupResources, Cgroups } from "../ports/cgroups.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { type CgroupDriver, cgroupPath, kubepodsCgroup, qosCgroup } from "./cgroup-names.ts";
import type { NodeCapacity } from "./node-allocatable.ts";
import {
  type ClassRequests,
  classRequests,
  kubepodsResources,
  type QosClassSettings,
  qosResources,
} from "./qos-resources.ts";
import { qosClass } from "./qos.ts";

export interface QosCgroupsConfig extends QosClassSettings, NodeCapacity {
  readonly driver: CgroupDriver;
  /** Parent of kubepods. */
  readonly cgroupRoot: string;
  /** Whether all pods together are limited to node allocatable: enforceNodeAllocatable has `pods`. */
  readonly enforced: boolean;
}

export interface QosCgroupsDependencies {
  readonly cgroups: Cgroups;
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Receives the classes' requests whenever memory is protected by them. */
  readonly memoryProtected?: ((requests: ClassRequests) => void) | undefined;
}

/** As upstream. */
const retryMs = 60_000;
/** While there is nothing to retry. */
const idleMs = 24 * 3_600_000;

/** The cgroups above pods': kubepods, which limits all pods to node allocatable, and those of two QoS classes. */
export class QosCgroups {
  readonly #deps: QosCgroupsDependencies;
  readonly #config: QosCgroupsConfig;
  readonly #paths: Readonly<Record<"kubepods" | "burstable" | "bestEffort", string>>;
  readonly #pods = new Map<PodUid, Pod>();
  readonly #turn = new Semaphore(1);
  readonly #wait: WakeableWait;
  /** A write of the classes that has not started. */
  #toCome: Promise<void> | undefined;
  #treeMade: Promise<void> | undefined;
  /** The limits of all pods together, as this run first set them. */
  #limited: Promise<void> | undefined;
  /** Whether the tree was there, or has been created, at the start. */
  #isBegun = false;
  #isRefused = false;
  /** Whether the classes have values of this run. */
  #areWritten = false;
  /** Whether a class uses more memory than its desired limit. */
  #isOverLimit = false;
  #retryAtMs: number | undefined;

  constructor(deps: QosCgroupsDependencies, config: QosCgroupsConfig) {
    const { cgroupRoot, driver } = config;
    this.#deps = deps;
    this.#config = config;
    this.#wait = new WakeableWait(deps.clock, "next try to limit the cgroups of all pods");
    this.#paths = {
      kubepods: cgroupPath(kubepodsCgroup(cgroupRoot), driver),
      burstable: cgroupPath(qosCgroup(cgroupRoot, "Burstable"), driver),
      bestEffort: cgroupPath(qosCgroup(cgroupRoot, "BestEffort"), driver),
    };
  }

  /** Creates the tree once. */
  async ensure(): Promise<void> {
    this.#treeMade ??= this.#makeTree().catch((error: unknown) => {
      this.#treeMade = undefined;
      throw error;
    });
    await this.#treeMade;
  }

  /** Adds the pod to its class. */
  async count(pod: Pod): Promise<void> {
    const { memoryQos, reservedMemory } = this.#config;
    const qos = qosClass(pod);
    const counts = memoryQos !== undefined || reservedMemory !== undefined ? qos !== "BestEffort" : qos === "Burstable";
    if (!counts) return;
    this.#pods.set(pod.metadata.uid, pod);
    await this.#applyClasses();
  }

  /**
   * Removes the pod from its class: its cgroup was removed. A pod of an earlier run was not counted in this one, but in
   * the values that the earlier one left.
   */
  async forget(uid: PodUid): Promise<void> {
    const wasCounted = this.#pods.delete(uid);
    const isLeft = !this.#areWritten && (await this.#deps.cgroups.exists(this.#paths.burstable));
    if (wasCounted || isLeft) await this.#applyClasses();
  }

  /** Creates and limits the tree, also for no pods, and retries each minute what the kernel refused. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    this.#retryAtMs = clock.monotonic();
    while (!signal.aborted) {
      const inMs = this.#retryAtMs === undefined ? idleMs : this.#retryAtMs - clock.monotonic();
      await this.#wait.for(Math.max(0, inMs), signal);
      if (signal.aborted || this.#retryAtMs === undefined || this.#retryAtMs > clock.monotonic()) continue;
      this.#retryAtMs = undefined;
      const isOverLimit = this.#isOverLimit;
      try {
        if (this.#isRefused) await this.#enforce();
        if (!this.#isBegun) await this.#begin();
        if (this.#isOverLimit) await this.#applyClasses();
      } catch (error) {
        this.#isOverLimit ||= isOverLimit;
        log.warn("cannot limit the cgroups of all pods", { error: errorMessage(error) });
        this.#retryLater();
      }
    }
  }

  /** Removes the tree; expects no pods in it. */
  async remove(): Promise<void> {
    await this.#deps.cgroups.remove(this.#paths.kubepods);
    this.#treeMade = undefined;
    this.#limited = undefined;
  }

  /** Classes of an earlier run keep the values of its pods, which may run on, until the first pod of this run. */
  async #begin(): Promise<void> {
    const { cgroups } = this.#deps;
    await this.#limit();
    const { burstable, bestEffort } = this.#paths;
    if (!(await cgroups.exists(burstable)) || !(await cgroups.exists(bestEffort))) await this.ensure();
    this.#isBegun = true;
  }

  async #makeTree(): Promise<void> {
    const { cgroups } = this.#deps;
    const { memoryQos } = this.#config;
    const { kubepods, burstable, bestEffort } = qosResources(classRequests([]), { memoryQos });
    await this.#limit();
    if (memoryQos !== undefined) await cgroups.apply(this.#paths.kubepods, kubepods);
    await cgroups.apply(this.#paths.burstable, burstable);
    await cgroups.apply(this.#paths.bestEffort, bestEffort);
  }

  /** Limits all pods together, once. */
  async #limit(): Promise<void> {
    await (this.#limited ?? this.#enforce());
  }

  async #enforce(): Promise<void> {
    this.#limited = this.#setLimits().catch((error: unknown) => {
      this.#limited = undefined;
      throw error;
    });
    await this.#limited;
  }

  /**
   * Emits upstream's node Events; none without enforcement, because the cgroup is not limited. Pods run even while the
   * kernel refuses the limits, as v1 does while usage exceeds them.
   */
  async #setLimits(): Promise<void> {
    const { cgroups, journal, log } = this.#deps;
    const { enforced } = this.#config;
    const path = this.#paths.kubepods;
    const wanted = kubepodsResources(this.#config);
    await this.#warnOfUse(path, wanted);
    try {
      await cgroups.apply(path, wanted);
      this.#isRefused = false;
      const message = "Updated Node Allocatable limit across pods";
      if (enforced) journal.record({ kind: "note", what: "NodeAllocatableEnforced", message });
    } catch (error) {
      const message = `Failed to update Node Allocatable Limits "${path}": ${errorMessage(error)}`;
      if (enforced) journal.record({ kind: "note", what: "FailedNodeAllocatableEnforcement", message });
      else log.warn("cannot limit the cgroup of all pods", { path, error: errorMessage(error) });
      this.#isRefused = true;
      if (!(await cgroups.exists(path))) throw error;
      this.#retryLater();
    }
  }

  /** On cgroup v2 the kernel may kill processes for a limit below the usage. */
  async #warnOfUse(path: string, { memoryLimitBytes = -1 }: CgroupResources): Promise<void> {
    const usedBytes = await this.#used(path);
    if (memoryLimitBytes < 0 || usedBytes <= memoryLimitBytes) return;
    this.#deps.log.warn("memory limit of a cgroup is below its usage", { path, memoryLimitBytes, usedBytes });
  }

  /** Writes are serialized, or an older sum could overwrite a newer one. Requests before a write starts share it. */
  async #applyClasses(): Promise<void> {
    this.#toCome ??= this.#writeClasses();
    await this.#toCome;
  }

  async #writeClasses(): Promise<void> {
    using _turn = await this.#turn.acquire();
    this.#toCome = undefined;
    const { cgroups, memoryProtected } = this.#deps;
    const { memoryQos, reservedMemory } = this.#config;
    const requests = classRequests(this.#pods.values());
    const { kubepods, burstable, bestEffort } = qosResources(requests, this.#config);
    this.#isOverLimit = false;
    this.#areWritten = true;
    if (memoryQos !== undefined) {
      await cgroups.apply(this.#paths.kubepods, kubepods);
      memoryProtected?.(requests);
    }
    await cgroups.apply(this.#paths.burstable, await this.#aboveUse(this.#paths.burstable, burstable));
    if (reservedMemory === undefined) return;
    await cgroups.apply(this.#paths.bestEffort, await this.#aboveUse(this.#paths.bestEffort, bestEffort));
  }

  /** A class above its desired limit is limited to its usage for now, and to less when its usage falls. */
  async #aboveUse(path: string, wanted: CgroupResources): Promise<CgroupResources> {
    if (wanted.memoryLimitBytes === undefined) return wanted;
    const usedBytes = await this.#used(path);
    if (usedBytes <= wanted.memoryLimitBytes) return wanted;
    const { log } = this.#deps;
    log.debug("a QoS class uses more memory than qosReserved allows", { path, usedBytes, ...wanted });
    this.#isOverLimit = true;
    this.#retryLater();
    return { ...wanted, memoryLimitBytes: usedBytes };
  }

  async #used(path: string): Promise<number> {
    const { cgroups } = this.#deps;
    return (await cgroups.exists(path)) ? (await cgroups.read(path)).memoryUsageBytes : 0;
  }

  #retryLater(): void {
    this.#retryAtMs = this.#deps.clock.monotonic() + retryMs;
    this.#wait.wake();
  }
}
