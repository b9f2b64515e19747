import type { ApiClient } from "../api-client/client.ts";
import { CsiRoom } from "../csi/csi-room.ts";
import { ResourceSlices } from "../node/resource-slices.ts";
import { NodeSetup } from "../node-setup/node-setup.ts";
import { UtilityChains } from "../firewall/utility-chains.ts";
import { pluginClient } from "../grpc/plugin-client.ts";
import type { Recorder } from "../journal/entry.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { Room } from "../kubelet/room.ts";
import { systemLoginManager } from "../linux/dbus/login-manager.ts";
import { Collection } from "../objects/collection.ts";
import { PluginRegistry } from "../plugins/plugin-registry.ts";
import { cgroupPath, kubepodsCgroup } from "../resources/cgroup-names.ts";
import { ShutdownManager } from "../shutdown/shutdown-manager.ts";
import { ShutdownRecord } from "../shutdown/shutdown-record.ts";
import type { Daemon, PreparedDaemon } from "./daemon.ts";
import { pluginFindings } from "./plugin-findings.ts";

type FromDaemon = Pick<Daemon, "ports" | "log">;
type FromPrepared = Pick<PreparedDaemon, "settings" | "rootDirectory" | "nodeName" | "metrics">;

/**
 * The optional managers of this node.
 * @param client undefined: standalone
 */
export function nodeRooms(
  daemon: FromDaemon,
  prepared: FromPrepared,
  config: Pick<KubeletConfig, "node">,
  journal: Recorder,
  client: ApiClient | undefined,
): readonly Room[] {
  const { clock, processes } = daemon.ports;
  const { makesUtilityChains, shutdownPeriods } = prepared.settings;
  const log = daemon.log.child({ component: "firewall" });
  return [
    setupRoom(daemon, prepared, config, journal),
    ...pluginRooms(daemon, prepared, journal, client),
    ...(client === undefined ? [] : [slicesRoom(daemon, prepared, journal, client)]),
    ...(shutdownPeriods.length > 0 ? [shutdownRoom(daemon, prepared, journal)] : []),
    ...(makesUtilityChains ? [new UtilityChains({ clock, log, processes })] : []),
  ];
}

/** The registration of plugins, and the managers that use them. */
function pluginRooms(
  { ports, log: parent }: FromDaemon,
  { settings, rootDirectory, nodeName, metrics }: FromPrepared,
  journal: Recorder,
  client: ApiClient | undefined,
): readonly Room[] {
  const { clock, files, volumeFiles } = ports;
  const plugins = pluginClient(clock);
  const log = parent.child({ component: "csi" });
  const called = metrics.csi.called.bind(metrics.csi);
  const csi = new CsiRoom(
    { ports, journal, log, plugins, called, observer: metrics.runtime, client, driverObjects: new Collection() },
    { nodeName, rootDirectory, ...settings },
  );
  const registry = new PluginRegistry(
    {
      ...{ clock, files, volumeFiles, journal, plugins },
      log: parent.child({ component: "plugins" }),
      handlers: [csi.handler],
      onSockets: (sockets) => metrics.csi.plugins(sockets),
    },
    `${rootDirectory}/plugins_registry`,
  );
  return [csi, { run: (signal) => registry.run(signal), findings: () => pluginFindings(registry.refused) }];
}

function slicesRoom(
  { ports, log: parent }: FromDaemon,
  { nodeName }: FromPrepared,
  journal: Recorder,
  client: ApiClient,
): Room {
  const { clock, random } = ports;
  return new ResourceSlices({ client, clock, random, journal, log: parent.child({ component: "node" }), nodeName });
}

function setupRoom(
  { ports, log: parent }: FromDaemon,
  { settings }: FromPrepared,
  { node }: Pick<KubeletConfig, "node">,
  journal: Recorder,
): Room {
  const { clock, files, cgroups, processes } = ports;
  const log = parent.child({ component: "node-setup" });
  const { cgroupRoot, cgroupDriver } = node;
  const kubepods = cgroupRoot && cgroupPath(kubepodsCgroup(cgroupRoot), cgroupDriver);
  const protectsMemory = node.resources.memoryQos !== undefined;
  return new NodeSetup(
    { clock, files, cgroups, journal, log, ownPid: processes.ownPid },
    { ...settings.nodeSetup, cgroupDriver, kubepods, protectsMemory },
  );
}

function shutdownRoom(
  { ports, log: parent }: FromDaemon,
  { settings, rootDirectory, metrics }: FromPrepared,
  journal: Recorder,
): Room {
  const { clock, files } = ports;
  const log = parent.child({ component: "shutdown" });
  const login = systemLoginManager(clock, process.env["DBUS_SYSTEM_BUS_ADDRESS"]);
  const record = new ShutdownRecord(files, log, rootDirectory);
  return new ShutdownManager(
    { clock, files, journal, log, login, record, onTimes: (times) => metrics.shutdown.set(times) },
    settings.shutdownPeriods,
  );
}
