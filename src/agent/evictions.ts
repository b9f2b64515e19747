import type { NodeFlagValues } from "../config/flags.ts";
import type { EvictionFields } from "../config/settings.ts";
import { MachineObservations } from "../engine/machine-observations.ts";
import type { NodeStats } from "../engine/node-stats.ts";
import { PodUsages } from "../engine/pod-usages.ts";
import { AcceptedEvictions } from "../eviction/accepted-evictions.ts";
import { type EvictionConfig, EvictionManager } from "../eviction/manager.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import type { AgentPorts } from "./process-start.ts";

export interface EvictionParts {
  readonly ports: Pick<AgentPorts, "clock" | "files" | "statsFiles">;
  readonly cri: Cri;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly node: NodeContext;
  readonly stats: NodeStats;
}

export interface EvictionSettings extends EvictionConfig {
  /** Evictions by thresholds that changed since the last start wait for a confirmation. */
  readonly asks: boolean;
  /** Whether memory.available is the kernel's MemAvailable instead of the capacity minus the working set. */
  readonly countsMemAvailable: boolean;
  /** systemReserved and kubeReserved together. */
  readonly reservedMemoryBytes: number;
}

/** The eviction manager of this machine's pods. */
export function buildEvictions(
  { ports, cri, journal, log, node, stats }: EvictionParts,
  { asks, ...config }: EvictionSettings,
): EvictionManager {
  const { clock, files, statsFiles } = ports;
  const { countsMemAvailable } = config;
  const own = log.child({ component: "eviction" });
  const observations = new MachineObservations({ clock, files: statsFiles, cri, node, countsMemAvailable });
  const directory = `${node.rootDirectory}/podwright`;
  const deps = {
    clock,
    journal,
    log: own,
    look: observations.look.bind(observations),
    usage: new PodUsages(clock, stats),
    accepted: new AcceptedEvictions({ files, log: own, directory }, config, asks),
  };
  return new EvictionManager(deps, config);
}

/** The eviction settings of a configuration and podwright's own flags. */
export function evictionSettings(
  { kernelMemcgNotification, ...fields }: EvictionFields,
  cgroupVersion: 1 | 2,
  { confirmEvictions = false }: Pick<NodeFlagValues, "confirmEvictions">,
): EvictionSettings {
  return {
    ...fields,
    // Upstream uses a kernel notification that only cgroup v1 has.
    watchesMemory: kernelMemcgNotification && cgroupVersion === 1,
    asks: confirmEvictions,
  };
}
