import { MachineObservations } from "../engine/machine-observations.ts";
import { PressureMonitor, type PressureMonitorConfig } from "../eviction/pressure-monitor.ts";
import type { Recorder } from "../journal/entry.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import { openStatsFiles } from "../linux/files/stats-files.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";

/** What looks whether this machine runs out of something. */
export async function openPressure(
  parts: { readonly ports: Ports; readonly cri: Cri; readonly log: Logger; readonly config: KubeletConfig },
  config: PressureMonitorConfig,
  journal: Recorder,
): Promise<PressureMonitor> {
  const { clock } = parts.ports;
  const files = await openStatsFiles(clock);
  const observations = new MachineObservations({ clock, files, cri: parts.cri, node: parts.config.node });
  const wanted = new Set(config.thresholds.map(({ signal }) => signal));
  const log = parts.log.child({ room: "eviction" });
  return new PressureMonitor({ clock, journal, log, observe: (signal) => observations.look(wanted, signal) }, config);
}
