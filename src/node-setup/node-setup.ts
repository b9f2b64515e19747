import type { Recorder } from "../journal/entry.ts";
import type { Cgroups } from "../ports/cgroups.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { CgroupDriver } from "../resources/cgroup-names.ts";
import { ensureKernelSettings } from "./kernel-settings.ts";
import { limitReservedCgroups, type ReservedCgroup } from "./reserved-cgroups.ts";
import { moveKubelet, moveSystemProcesses } from "./system-processes.ts";

/** What a kubelet makes of its machine. */
export interface NodeSetupSettings {
  /** KubeletConfiguration's protectKernelDefaults. */
  readonly protectsKernelDefaults: boolean;
  readonly reservedCgroups: readonly ReservedCgroup[];
  /** Paths; empty: no processes are moved. */
  readonly systemCgroups: string;
  readonly kubeletCgroups: string;
}

export interface NodeSetupConfig extends NodeSetupSettings {
  readonly cgroupDriver: CgroupDriver;
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
/** What is recorded of a start that fails reaches the API server meanwhile. */
const farewellMs = 1000;

/**
 * Prepares the machine for pods (upstream: the container manager's setupNode): kernel settings, limits of the cgroups that
 * resources are reserved for, and processes that belong into cgroups of their own.
 */
export class NodeSetup {
  readonly #deps: NodeSetupDependencies;
  readonly #config: NodeSetupConfig;

  constructor(deps: NodeSetupDependencies, config: NodeSetupConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** @throws PodwrightError (environment) when the machine does not allow it: the kubelet does not start */
  async load(): Promise<void> {
    const { clock } = this.#deps;
    const { protectsKernelDefaults, reservedCgroups, cgroupDriver, protectsMemory } = this.#config;
    try {
      await ensureKernelSettings(this.#deps, protectsKernelDefaults);
      await limitReservedCgroups(this.#deps, { cgroups: reservedCgroups, driver: cgroupDriver, protectsMemory });
    } catch (error) {
      await clock.sleep("what is recorded to be sent", farewellMs);
      throw error;
    }
  }

  /** Looks each minute for processes that belong elsewhere, until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, ownPid } = this.#deps;
    const { systemCgroups, kubeletCgroups } = this.#config;
    if (systemCgroups === "" && kubeletCgroups === "") return;
    while (!signal.aborted) {
      if (systemCgroups !== "") await moveSystemProcesses(this.#deps, systemCgroups);
      if (kubeletCgroups !== "") await moveKubelet(this.#deps, ownPid, kubeletCgroups);
      await clock.sleep("the next look at processes of the system", periodMs, signal).catch(() => {});
    }
  }
}
