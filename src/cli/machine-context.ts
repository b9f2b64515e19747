import { environmentProxy } from "../kube/proxy.ts";
import { systemCompression } from "../linux/files/compression.ts";
import { systemDaemons } from "../linux/processes/daemons.ts";
import { systemMounts } from "../linux/files/mounts.ts";
import { openNetwork } from "../linux/network/network.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import type { Compression } from "../ports/compression.ts";
import type { Daemons } from "../ports/daemons.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Network } from "../ports/network.ts";
import type { Processes } from "../ports/processes.ts";
import type { CommandContext } from "./context.ts";

/** Further ports, for commands that use more than the engine's socket; others do not load them. */
export interface MachineContext extends CommandContext {
  readonly compression: Compression;
  readonly processes: Processes;
  readonly mounts: Mounts;
  readonly network: Network;
  readonly daemons: Daemons;
}

export function openMachine(context: CommandContext): MachineContext {
  return {
    ...context,
    compression: systemCompression,
    processes: systemProcesses,
    mounts: systemMounts,
    network: openNetwork((url) => environmentProxy(url, context.environment)),
    daemons: systemDaemons,
  };
}
