import type { Recorder } from "../journal/entry.ts";
import type { Cgroups } from "../ports/cgroups.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { CgroupDriver } from "../resources/cgroup-names.ts";
import { ensureKernelSettings } from "./kernel-settings.ts";
import { limitReservedCgroups, type ReservedCgroup } from "./reserved-cgroups.ts";
import { moveKubelet, moveSystemProcesses } from "./system-processes.ts";

export interface NodeSetupSettings {
  /** KubeletConfiguration's protectKernelDefaults. */
  readonly protectsKernelDefaults: boolean;
  /** Feature gate KubeletInUserNamespace. */
  readonly toleratesUserNamespace: boolean;
  readonly reservedCgroups: readonly ReservedCgroup[];
  /** Paths; empty: no processes are moved. */
  readonly systemCgroups: string;
  readonly kubeletCgroups: string;
}

export interface NodeSetupConfig extends NodeSetupSettings {
  readonly cgroupDriver: CgroupDriver;
  /** The cgroup of all pods; undefined: there is none. */
  readonly kubepods: string | undefined;
  /** Feature gate MemoryQoS on cgroup v2. */
  readonly protectsMemory: boolean;
}

export interface NodeSetupDependencies {
  readonly clock: Clock;
  readonly cgroups: Cgroups;
  readonly files: Files;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly ownPid: number;
}

/** As upstream. */
const periodMs = 60_000;
/** Gives the Events of a failed start time to reach the API server. */
const farewellMs = 1000;

/**
 * Prepares the machine for pods (upstream: the container manager's setupNode): kernel settings, limits of reserved
 * cgroups, and cgroups of the kubelet and of system processes.
 */
export class NodeSetup {
  readonly #deps: NodeSetupDependencies;
  readonly #config: NodeSetupConfig;

  constructor(deps: NodeSetupDependencies, config: NodeSetupConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** @throws PodwrightError (environment) if the machine does not permit it: the kubelet does not start */
  async load(): Promise<void> {
    const { clock } = this.#deps;
    const { protectsKernelDefaults, toleratesUserNamespace } = this.#config;
    const { reservedCgroups: cgroups, cgroupDriver: driver, kubepods, protectsMemory } = this.#config;
    try {
      const policy = { isProtected: protectsKernelDefaults, toleratesUserNamespace };
      await ensureKernelSettings(this.#deps, policy);
      await limitReservedCgroups(this.#deps, { cgroups, driver, kubepods, protectsMemory });
    } catch (error) {
      await clock.sleep("events of the failed start to be sent", farewellMs);
      throw error;
    }
  }

  /** Moves misplaced processes each minute, until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, ownPid } = this.#deps;
    const { systemCgroups, kubeletCgroups } = this.#config;
    if (systemCgroups === "" && kubeletCgroups === "") return;
    while (!signal.aborted) {
      if (systemCgroups !== "") await moveSystemProcesses(this.#deps, systemCgroups);
      if (kubeletCgroups !== "") await moveKubelet(this.#deps, ownPid, kubeletCgroups);
      await clock.sleep("next check of system processes", periodMs, signal).catch(() => {});
    }
  }
}
