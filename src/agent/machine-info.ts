import { type MachineInfo, readMachineInfo } from "../engine/machine.ts";
import { openStatsFiles } from "../linux/files/stats-files.ts";
import type { Ports } from "../ports/ports.ts";

/** What this machine has for pods whose directories lie there. */
export async function machineInfo({ clock, files, cgroups }: Ports, rootDirectory: string): Promise<MachineInfo> {
  const stats = await openStatsFiles(clock);
  const [machine, fileSystem] = await Promise.all([readMachineInfo(files, cgroups), stats.fileSystem(rootDirectory)]);
  return fileSystem === undefined ? machine : { ...machine, ephemeralStorageBytes: BigInt(fileSystem.capacityBytes) };
}
