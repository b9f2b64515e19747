import type { KubeletDependencies } from "../../kubelet/dependencies.ts";
import type { PressureStall } from "../../ports/pressure-stall.ts";
import type { IncarnationClock } from "../clock.ts";
import { simCompression } from "../compression.ts";
import type { SimDisks } from "../disks.ts";
import type { MemoryFiles } from "../files.ts";
import type { Gate } from "../gate.ts";
import { simHashing } from "../hashing.ts";
import type { SimKernelLog } from "../kernel-log.ts";
import { type SimCgroups, type SimLoopDevices, type SimMounts, simProcesses } from "../machine.ts";
import type { SimProjectQuotas } from "../project-quotas.ts";
import { SimNetworkProbes } from "../network-probes.ts";
import type { SimRandom } from "../random.ts";
import type { RuntimeWorld } from "../runtime-world.ts";
import { SimVolumeFiles } from "../volume-files.ts";

/** The parts of a simulated machine that outlive podwright's runs. */
interface SimMachine {
  readonly files: MemoryFiles;
  readonly cgroups: SimCgroups;
  readonly mounts: SimMounts;
  readonly loopDevices: SimLoopDevices;
  readonly kernelLog: SimKernelLog;
  readonly disks: SimDisks;
  readonly quotas: SimProjectQuotas;
}

/** One run of podwright on it. */
interface SimLife {
  readonly world: RuntimeWorld;
  readonly clock: IncarnationClock;
  readonly gate: Gate;
  readonly random: SimRandom;
  readonly stalls: PressureStall;
}

/** The machine's ports for one run: behind a gate that may end the run or fail calls. */
export function portsOf(
  { files, cgroups, mounts, loopDevices, kernelLog, disks, quotas }: SimMachine,
  { world, clock, gate, random, stalls }: SimLife,
): KubeletDependencies["ports"] {
  const cutShort = async (operation: string, path: string): Promise<void> => {
    if (operation === "writeAtomic") await files.leaveUnfinished(path);
  };
  const guarded = gate.through(files, "files", ["watch", "watchEntries"], cutShort);
  return {
    clock,
    random,
    files: guarded,
    memoryFiles: guarded,
    hashing: simHashing,
    compression: gate.through(simCompression(guarded), "plain", ["gunzip"]),
    processes: { ...simProcesses, ...gate.through(disks.programs, "machine") },
    mounts: gate.through(mounts, "machine"),
    loopDevices: gate.through(loopDevices, "machine"),
    projectQuotas: gate.through(quotas, "machine"),
    volumeFiles: gate.through(new SimVolumeFiles(files, isSquashed), "files"),
    cgroups: gate.through(cgroups, "machine"),
    networkProbes: gate.through(new SimNetworkProbes(world, clock), "plain"),
    kernelLog,
    stalls,
  };
}

/** Of the drivers' volumes some are exports with root_squash. */
function isSquashed(root: string): boolean {
  const name = /\/kubernetes\.io~csi\/(?<volume>[^/]+)\/mount$/u.exec(root)?.groups?.["volume"];
  return name !== undefined && Buffer.from(name).reduce((sum, byte) => sum + byte, 0) % 4 === 0;
}
