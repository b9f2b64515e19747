import { MachineObservations } from "../engine/machine-observations.ts";
import { PressureMonitor, type PressureMonitorConfig } from "../eviction/pressure-monitor.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import type { AgentPorts } from "./process-start.ts";

export interface PressureParts {
  readonly ports: Pick<AgentPorts, "clock" | "statsFiles">;
  readonly cri: Cri;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly node: NodeContext;
}

/** What looks whether this machine runs out of something. */
export function buildPressure(
  { ports, cri, journal, log, node }: PressureParts,
  config: PressureMonitorConfig,
): PressureMonitor {
  const { clock, statsFiles: files } = ports;
  const observations = new MachineObservations({ clock, files, cri, node });
  const wanted = new Set(config.thresholds.map(({ signal }) => signal));
  return new PressureMonitor(
    { clock, journal, log: log.child({ room: "eviction" }), observe: (signal) => observations.look(wanted, signal) },
    config,
  );
}
