import { CsiRoom } from "../../csi/csi-room.ts";
import type { Room } from "../../kubelet/room.ts";
import { Collection } from "../../objects/collection.ts";
import { PluginRegistry } from "../../plugins/plugin-registry.ts";
// Loaded in advance: loading it during a life would take real time.
import "../../ports/gen/csi/v1/csi_pb.js";
import "../../ports/gen/pluginregistration/v1/api_pb.js";
import { simPluginClient } from "../csi/plugin-client.ts";
import { silentLog } from "../machine.ts";
import { clusterNodeName } from "./cluster.ts";
import { usualConfig } from "./node-config.ts";
import type { RoomParts } from "./node-settings.ts";
import type { SimNode } from "./node.ts";

/** The rooms of a node with CSI drivers. */
export function driverRooms({ drivers }: Pick<SimNode, "drivers">, parts: RoomParts): readonly Room[] {
  const { ports, record, gate, client, observer } = parts;
  const { clock, files, volumeFiles } = ports;
  const { rootDirectory } = usualConfig.node;
  const plugins = simPluginClient({ clock, gate, sockets: drivers.sockets });
  const shared = { journal: { record }, log: silentLog, plugins };
  const csi = new CsiRoom(
    { ...shared, ports, called: () => {}, observer, client, driverObjects: new Collection() },
    {
      nodeName: clusterNodeName,
      rootDirectory,
      syncFrequencyMs: usualConfig.worker.syncFrequencyMs,
      asksVolumeHealth: false,
    },
  );
  const registry = new PluginRegistry(
    { ...shared, clock, files, volumeFiles, handlers: [csi.handler], onSockets: () => {} },
    `${rootDirectory}/plugins_registry`,
  );
  return [csi, registry];
}
