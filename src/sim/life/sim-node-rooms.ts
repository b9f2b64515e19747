import { UtilityChains } from "../../firewall/utility-chains.ts";
import type { Room } from "../../kubelet/room.ts";
import { kernelSettings } from "../../node-setup/kernel-settings.ts";
import { NodeSetup } from "../../node-setup/node-setup.ts";
import { ShutdownManager } from "../../shutdown/shutdown-manager.ts";
import { ShutdownRecord, type ShutdownTimes } from "../../shutdown/shutdown-record.ts";
import type { ShutdownPeriod } from "../../shutdown/periods.ts";
import type { MemoryFiles } from "../files.ts";
import { silentLog } from "../machine.ts";
import { usualConfig } from "./node-config.ts";
import type { RoomParts } from "./node-settings.ts";
import type { SimNode } from "./node.ts";

/** The time of each priority's pods in a shutdown of a simulated node. */
export const simShutdownPeriods: readonly ShutdownPeriod[] = [
  { priority: 0, graceSeconds: 12 },
  { priority: 1000, graceSeconds: 8 },
  { priority: 2_000_000_000, graceSeconds: 5 },
];

/** A system cgroup of the machine, and its reserved resources. */
export const simReserved = { cgroup: "/system", limits: { cpuShares: 512, memoryLimitBytes: 2 ** 30, pidsLimit: 500 } };

const rootDirectory = usualConfig.node.rootDirectory;

export function shutdownRoom(
  node: Pick<SimNode, "power">,
  { ports, record: write, isAlive }: RoomParts,
  periods: readonly ShutdownPeriod[],
  onTimes: (times: ShutdownTimes) => void,
): ShutdownManager {
  const { clock, files } = ports;
  const login = node.power.login.port(isAlive);
  const record = new ShutdownRecord(files, silentLog, rootDirectory);
  const deps = { clock, files, log: silentLog, journal: { record: write }, login, record, onTimes };
  return new ShutdownManager(deps, periods);
}

/** The kubelet's rooms for the machine: reserved cgroups, node shutdowns, iptables chains. */
export function machineRooms(node: Pick<SimNode, "power" | "firewall" | "cgroups">, parts: RoomParts): readonly Room[] {
  const { ports, record: write, isAlive } = parts;
  const { clock, files } = ports;
  const journal = { record: write };
  // A rejection prevents the start.
  const { cgroups } = node;
  const reserved = { cpu: "500m", memory: "1Gi", pid: "500" };
  const system = { kind: "System", cgroup: simReserved.cgroup, reserved, onlyCompressible: false } as const;
  const kernel = { protectsKernelDefaults: true, toleratesUserNamespace: false } as const;
  const settings = { ...kernel, reservedCgroups: [system], systemCgroups: "", kubeletCgroups: "" };
  const config = { ...settings, cgroupDriver: "cgroupfs", kubepods: "/kubepods", protectsMemory: false } as const;
  return [
    new NodeSetup({ clock, cgroups, files, journal, log: silentLog, ownPid: 1 }, config),
    shutdownRoom(node, parts, simShutdownPeriods, () => {}),
    new UtilityChains({ clock, log: silentLog, processes: node.firewall.port(isAlive) }),
  ];
}

/** The state of the machine before a kubelet starts. */
export async function prepareMachine(node: Pick<SimNode, "cgroups">, files: MemoryFiles): Promise<void> {
  for (const [name, value] of Object.entries(kernelSettings)) {
    const path = `/proc/sys/${name}`;
    await files.makeDirectory(path.slice(0, path.lastIndexOf("/")), 0o755);
    await files.write(path, String(value), 0o644);
  }
  await node.cgroups.apply(simReserved.cgroup, {});
}
