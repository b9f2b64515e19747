import { NodeSetup } from "../node-setup/node-setup.ts";
import { UtilityChains } from "../firewall/utility-chains.ts";
import type { Recorder } from "../journal/entry.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { Room } from "../kubelet/room.ts";
import { systemLoginManager } from "../linux/dbus/login-manager.ts";
import { ShutdownManager } from "../shutdown/shutdown-manager.ts";
import { ShutdownRecord } from "../shutdown/shutdown-record.ts";
import type { Daemon, PreparedDaemon } from "./daemon.ts";

type FromDaemon = Pick<Daemon, "ports" | "log">;
type FromPrepared = Pick<PreparedDaemon, "settings" | "rootDirectory" | "metrics">;

/** What this node has beyond what every kubelet has. */
export function nodeRooms(
  daemon: FromDaemon,
  prepared: FromPrepared,
  config: Pick<KubeletConfig, "node">,
  journal: Recorder,
): readonly Room[] {
  const { clock, processes } = daemon.ports;
  const { makesUtilityChains, shutdownPeriods } = prepared.settings;
  const log = daemon.log.child({ room: "firewall" });
  return [
    setupRoom(daemon, prepared, config, journal),
    ...(shutdownPeriods.length > 0 ? [shutdownRoom(daemon, prepared, journal)] : []),
    ...(makesUtilityChains ? [new UtilityChains({ clock, log, processes })] : []),
  ];
}

function setupRoom(
  { ports, log: parent }: FromDaemon,
  { settings }: FromPrepared,
  { node }: Pick<KubeletConfig, "node">,
  journal: Recorder,
): Room {
  const { clock, files, cgroups, processes } = ports;
  const log = parent.child({ room: "node-setup" });
  const protectsMemory = node.resources.memoryQos !== undefined;
  return new NodeSetup(
    { clock, files, cgroups, journal, log, ownPid: processes.ownPid },
    { ...settings.nodeSetup, cgroupDriver: node.cgroupDriver, protectsMemory },
  );
}

function shutdownRoom(
  { ports, log: parent }: FromDaemon,
  { settings, rootDirectory, metrics }: FromPrepared,
  journal: Recorder,
): Room {
  const { clock, files } = ports;
  const log = parent.child({ room: "shutdown" });
  const login = systemLoginManager(clock, process.env["DBUS_SYSTEM_BUS_ADDRESS"]);
  const record = new ShutdownRecord(files, log, rootDirectory);
  return new ShutdownManager(
    { clock, files, journal, log, login, record, onTimes: (times) => metrics.shutdown.set(times) },
    settings.shutdownPeriods,
  );
}
