import { resolve } from "node:path/posix";
import { ExitCode } from "../base/errors.ts";
import { version } from "../base/version.ts";
import { environmentProxy } from "../kube/proxy.ts";
import { openCgroups } from "../linux/cgroups/cgroups.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { OwnDisks } from "../linux/files/far-storage.ts";
import { systemCompression } from "../linux/files/compression.ts";
import { memoryFiles, systemFiles } from "../linux/files/files.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { systemKernelLog } from "../linux/processes/kernel-log.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { systemPressureStall } from "../linux/cgroups/pressure-stall.ts";
import { systemLoopDevices } from "../linux/files/loop-devices.ts";
import { systemMounts } from "../linux/files/mounts.ts";
import { projectQuotas } from "../linux/files/project-quotas.ts";
import { openNetwork } from "../linux/network/network.ts";
import { systemNetworkProbes } from "../linux/network/network-probes.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { serviceManager } from "../linux/processes/service-manager.ts";
import { systemRandom } from "../linux/processes/random.ts";
import { openStatsFiles } from "../linux/files/stats-files.ts";
import { volumeFiles } from "../linux/files/volume-files.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { ServiceManager } from "../ports/service-manager.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { HeldError, whenFree } from "../private-runtime/hand-over.ts";
import type { RuntimeLayout } from "../private-runtime/layout.ts";
import { claimRuntime } from "../private-runtime/ownership.ts";
import { toldCommand } from "../private-runtime/told-command.ts";
import { FlightRecorder } from "../replay/flight-recorder.ts";

/** The ports of this machine, with its statistics files and the service manager. */
export interface AgentPorts extends Ports {
  readonly statsFiles: StatsFiles;
  /** Undefined: no service manager expects notifications. */
  readonly serviceManager: ServiceManager | undefined;
}

/** @param ownDirectories of the node: their disks are its own, without which it cannot go on */
export async function openPorts(ownDirectories: readonly string[] = []): Promise<AgentPorts> {
  return {
    clock: systemClock,
    random: systemRandom,
    files: systemFiles,
    memoryFiles,
    compression: systemCompression,
    hashing: systemHashing,
    processes: systemProcesses,
    mounts: systemMounts,
    loopDevices: systemLoopDevices,
    projectQuotas: projectQuotas({ clock: systemClock, files: systemFiles, processes: systemProcesses }),
    volumeFiles: volumeFiles(new OwnDisks(ownDirectories)),
    network: openNetwork((url) => environmentProxy(url, process.env)),
    networkProbes: systemNetworkProbes,
    kernelLog: systemKernelLog(systemClock),
    stalls: systemPressureStall,
    cgroups: await openCgroups(systemClock),
    statsFiles: await openStatsFiles(systemClock),
    serviceManager: serviceManager(process.env, systemProcesses),
  };
}

/**
 * Opens the recording of `--record`; undefined without one. Called before anything is started, so that a wrong path fails immediately.
 * @throws PodwrightError when the file is not writable, or not a recording
 */
export async function openRecorder(
  { files, clock }: Ports,
  log: Logger,
  path: string | undefined,
): Promise<FlightRecorder | undefined> {
  if (path === undefined || path === "") return undefined;
  return await FlightRecorder.open({ files, clock, log, path: resolve(process.cwd(), path), version });
}

/** Two nodes on one state directory would conflict over its manifests and journal. */
export async function lockStateDirectory(
  ports: Ports,
  layout: RuntimeLayout,
  log: Logger,
  signal: AbortSignal,
): Promise<Disposable> {
  return await whenFree(
    { clock: ports.clock, log },
    "the lock of the state directory",
    () => tryLock(ports, layout),
    signal,
  );
}

async function tryLock(ports: Ports, layout: RuntimeLayout): Promise<Disposable> {
  const lock = await systemLocks.tryOwnLock(layout.lockFile);
  if (lock !== undefined) return lock;
  const pid = await systemLocks.holder(layout.lockFile);
  const holder = (await ports.processes.list()).find((process) => process.pid === pid);
  const who = holder === undefined ? "gone" : toldCommand(holder);
  throw new HeldError(
    `another engine uses ${layout.stateDirectory}: pid ${pid ?? "unknown"} (${who})`,
    pid,
    "use that one, or choose another --state-dir",
  );
}

/**
 * Claims the runtime for this process. Like the state directory's lock, it is awaited while the previous process stops.
 */
export async function claim(ports: Ports, endpoint: string, log: Logger, signal: AbortSignal): Promise<Disposable> {
  const { clock, files, processes } = ports;
  const deps = { files, processes, hashing: systemHashing, locks: systemLocks };
  const take = (): Promise<Disposable> => claimRuntime(deps, endpoint);
  return await whenFree({ clock, log }, "the container runtime to have no other node agent", take, signal);
}

/** Shorter than the timeouts after which service managers kill without a reason. */
const endLimitMs = 30_000;

/**
 * Aborts at the first termination signal; the second one kills the process, as does any before this call. A process that
 * does not stop in time prints what it waits for, and exits.
 */
export function terminationSignal(limitMs = endLimitMs): AbortSignal {
  const termination = new AbortController();
  const signals = ["SIGTERM", "SIGINT"] as const;
  const end = (signal: NodeJS.Signals): void => {
    for (const each of signals) process.off(each, end);
    termination.abort(new Error(`received ${signal}`));
    systemClock.timer("the process to end", limitMs, () => {
      const held = [...systemClock.waits().map(({ name }) => name), ...process.getActiveResourcesInfo()];
      const what = `podwright: received ${signal}, and has not stopped after ${limitMs / 1000} s`;
      process.stderr.write(`${what}; exiting now, pods keep running. Pending: ${held.join(", ")}\n`);
      process.exit(ExitCode.failed);
    });
  };
  for (const signal of signals) process.on(signal, end);
  return termination.signal;
}

/** Calls back at each SIGHUP, which otherwise ends the process, until disposed of. */
export function onHangup(callback: () => void): Disposable {
  process.on("SIGHUP", callback);
  return { [Symbol.dispose]: () => void process.off("SIGHUP", callback) };
}
