import type { Recorder } from "../journal/entry.ts";
import type { Room } from "../kubelet/room.ts";
import { systemLoginManager } from "../linux/dbus/login-manager.ts";
import { ShutdownManager } from "../shutdown/shutdown-manager.ts";
import { ShutdownRecord } from "../shutdown/shutdown-record.ts";
import type { Daemon, PreparedDaemon } from "./daemon.ts";

/** What this node has beyond what every kubelet has. */
export function nodeRooms(
  { ports, log }: Pick<Daemon, "ports" | "log">,
  { settings, rootDirectory, metrics }: Pick<PreparedDaemon, "settings" | "rootDirectory" | "metrics">,
  journal: Recorder,
): readonly Room[] {
  const { clock, files } = ports;
  if (settings.shutdownPeriods.length === 0) return [];
  const own = log.child({ room: "shutdown" });
  return [
    new ShutdownManager(
      {
        clock,
        files,
        journal,
        log: own,
        login: systemLoginManager(clock, process.env["DBUS_SYSTEM_BUS_ADDRESS"]),
        record: new ShutdownRecord(files, own, rootDirectory),
        onTimes: (times) => metrics.shutdown.set(times),
      },
      settings.shutdownPeriods,
    ),
  ];
}
