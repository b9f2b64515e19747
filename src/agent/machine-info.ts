import { type MachineInfo, readMachineInfo } from "../engine/machine.ts";
import type { AgentPorts } from "./process-start.ts";

/** This machine's properties for pods with directories there. */
export async function machineInfo(
  { files, cgroups, statsFiles }: AgentPorts,
  rootDirectory: string,
): Promise<MachineInfo> {
  const [machine, fileSystem] = await Promise.all([
    readMachineInfo(files, cgroups),
    statsFiles.fileSystem(rootDirectory).catch(() => undefined),
  ]);
  return fileSystem === undefined ? machine : { ...machine, ephemeralStorageBytes: BigInt(fileSystem.capacityBytes) };
}
