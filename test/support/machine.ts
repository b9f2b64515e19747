import { connectCri } from "../../src/cri/client.ts";
import { openCgroups } from "../../src/linux/cgroups/cgroups.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemDaemons } from "../../src/linux/processes/daemons.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { systemLocks } from "../../src/linux/files/lock.ts";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { openNetwork } from "../../src/linux/network/network.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import type { StopDeps } from "../../src/private-runtime/stop.ts";

/** The real ports, as used to start, fill and stop a private runtime. */
export const machine: StopDeps = {
  cgroups: await openCgroups(systemClock),
  clock: systemClock,
  connect: (endpoint) => connectCri(endpoint, systemClock),
  daemons: systemDaemons,
  files: systemFiles,
  hashing: systemHashing,
  locks: systemLocks,
  mounts: systemMounts,
  network: openNetwork(),
  processes: systemProcesses,
};
