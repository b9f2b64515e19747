import type { Observation, Observations } from "../eviction/pressure.ts";
import type { Signal } from "../eviction/thresholds.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { FileSystemUsage, StatsFiles } from "../ports/stats-files.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { cgroupPath, kubepodsCgroup } from "../resources/cgroup-names.ts";
import type { CgroupSample } from "../stats/cgroup-sample.ts";
import { StatsCollector } from "../stats/collector.ts";

export interface MachineObservationsDependencies {
  readonly clock: Clock;
  readonly files: StatsFiles;
  readonly cri: Pick<Cri, "images">;
  readonly node: Pick<NodeContext, "rootDirectory" | "cgroupRoot" | "cgroupDriver">;
}

/** Where images lie is asked this often; how full it is there, at every look. */
const askAgainMs = 60_000;
const runtimeLimitMs = 5000;

/** What is left of the machine: memory, disks and processes. */
export class MachineObservations {
  readonly #deps: MachineObservationsDependencies;
  readonly #collector: StatsCollector;
  #imageFs: { readonly atMs: number; readonly mountpoint: string } | undefined;

  constructor(deps: MachineObservationsDependencies) {
    const { clock, files, node } = deps;
    const pods = cgroupPath(kubepodsCgroup(node.cgroupRoot), node.cgroupDriver);
    this.#deps = deps;
    this.#collector = new StatsCollector({
      clock,
      files,
      pods: () => [],
      system: async () => [{ name: "pods", cgroup: pods, pid: undefined, startedMs: undefined }],
    });
  }

  /** @param wanted only for what is wanted of it the runtime is asked */
  async look(wanted: ReadonlySet<Signal>, signal: AbortSignal): Promise<Observations> {
    const { files, node } = this.#deps;
    const imagesAreWanted = wanted.has("imagefs.available") || wanted.has("imagefs.inodesFree");
    const [sample, nodeFs, imageFs] = await Promise.all([
      this.#collector.collect("summary"),
      files.fileSystem(node.rootDirectory),
      imagesAreWanted ? this.#imageFileSystem(signal) : undefined,
    ]);
    const { machine, system } = sample;
    const pods = system.find(({ name }) => name === "pods");
    const { tasks, maxTasks } = machine;
    const found: readonly (readonly [signal: Signal, observation: Observation | undefined])[] = [
      ["memory.available", memoryOf(machine.sample)],
      ["allocatableMemory.available", pods && memoryOf(pods.sample)],
      ["nodefs.available", nodeFs && bytesOf(nodeFs)],
      ["nodefs.inodesFree", nodeFs && inodesOf(nodeFs)],
      ["imagefs.available", imageFs && bytesOf(imageFs)],
      ["imagefs.inodesFree", imageFs && inodesOf(imageFs)],
      ["pid.available", tasks === undefined || maxTasks === undefined ? undefined : left(maxTasks - tasks, maxTasks)],
    ];
    return new Map(found.flatMap(([name, observation]) => (observation === undefined ? [] : [[name, observation]])));
  }

  /** A runtime that does not tell is no reason to know nothing of the rest. */
  async #imageFileSystem(signal: AbortSignal): Promise<FileSystemUsage | undefined> {
    const { clock, cri, files } = this.#deps;
    const nowMs = clock.monotonic();
    if (this.#imageFs === undefined || nowMs - this.#imageFs.atMs >= askAgainMs) {
      const told = await cri.images.imageFsInfo({}, { timeoutMs: runtimeLimitMs, signal }).catch(() => undefined);
      signal.throwIfAborted();
      const mountpoint = told?.imageFilesystems[0]?.fsId?.mountpoint ?? this.#imageFs?.mountpoint ?? "";
      this.#imageFs = mountpoint === "" ? undefined : { atMs: nowMs, mountpoint };
    }
    return this.#imageFs && (await files.fileSystem(this.#imageFs.mountpoint));
  }
}

/** Undefined where there is no limit: nothing can be said to be left of it. */
function memoryOf({ memory }: CgroupSample): Observation | undefined {
  if (memory?.limit === undefined) return undefined;
  return left(Math.max(0, memory.limit - memory.workingSet), memory.limit);
}

function bytesOf({ availableBytes, capacityBytes }: FileSystemUsage): Observation {
  return left(availableBytes, capacityBytes);
}

/** File systems that make inodes as they need them tell of none. */
function inodesOf({ inodesFree, inodes }: FileSystemUsage): Observation | undefined {
  return inodes === 0 ? undefined : left(inodesFree, inodes);
}

function left(available: number, capacity: number): Observation {
  return { available: BigInt(Math.trunc(available)), capacity: BigInt(Math.trunc(capacity)) };
}
