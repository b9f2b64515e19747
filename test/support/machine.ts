import { connectCri } from "../../src/cri/client.ts";
import { openCgroups } from "../../src/linux/cgroups.ts";
import { systemClock } from "../../src/linux/clock.ts";
import { systemDaemons } from "../../src/linux/daemons.ts";
import { systemFiles } from "../../src/linux/files.ts";
import { systemHashing } from "../../src/linux/hashing.ts";
import { systemLocks } from "../../src/linux/lock.ts";
import { systemMounts } from "../../src/linux/mounts.ts";
import { openNetwork } from "../../src/linux/network.ts";
import { systemProcesses } from "../../src/linux/processes.ts";
import type { StopDeps } from "../../src/private-runtime/stop.ts";

/** The real ports, as starting, filling and stopping a private runtime take them. */
export const machine: StopDeps = {
  cgroups: await openCgroups(systemClock),
  clock: systemClock,
  connect: connectCri,
  daemons: systemDaemons,
  files: systemFiles,
  hashing: systemHashing,
  locks: systemLocks,
  mounts: systemMounts,
  network: openNetwork(),
  processes: systemProcesses,
};
