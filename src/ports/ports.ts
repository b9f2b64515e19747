import type { Cgroups } from "./cgroups.ts";
import type { Clock } from "./clock.ts";
import type { Compression } from "./compression.ts";
import type { Files } from "./files.ts";
import type { Hashing } from "./hashing.ts";
import type { KernelLog } from "./kernel-log.ts";
import type { LoopDevices } from "./loop-devices.ts";
import type { PressureStall } from "./pressure-stall.ts";
import type { Mounts } from "./mounts.ts";
import type { NetworkProbes } from "./network-probes.ts";
import type { Network } from "./network.ts";
import type { Processes } from "./processes.ts";
import type { ProjectQuotas } from "./project-quotas.ts";
import type { Random } from "./random.ts";
import type { VolumeFiles } from "./volume-files.ts";

/** The machine's side of the one door; the container runtime (`Cri`) is opened separately, as it has an endpoint. */
export interface Ports {
  readonly clock: Clock;
  readonly random: Random;
  readonly files: Files;
  readonly compression: Compression;
  readonly hashing: Hashing;
  readonly processes: Processes;
  readonly mounts: Mounts;
  readonly loopDevices: LoopDevices;
  /** The same files, for directories that the kernel keeps in memory (tmpfs): it answers at once. */
  readonly memoryFiles: Files;
  readonly projectQuotas: ProjectQuotas;
  readonly volumeFiles: VolumeFiles;
  readonly cgroups: Cgroups;
  readonly kernelLog: KernelLog;
  readonly stalls: PressureStall;
  readonly network: Network;
  readonly networkProbes: NetworkProbes;
}
