import { parseMemInfo } from "../base/kernel-text.ts";
import { type FileSystems, fileSystemsOf } from "../eviction/file-systems.ts";
import type { MachineLook } from "../eviction/machine-state.ts";
import type { Observation } from "../eviction/pressure.ts";
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
  /** memory.available is the kernel's MemAvailable; otherwise what the working set leaves. */
  readonly countsMemAvailable: boolean;
}

/** Interval for querying the image directory; its usage is measured each time. */
const askAgainMs = 60_000;
const runtimeLimitMs = 5000;
/** A runtime that takes this long to fail is left alone for a while: memory is not observed while it is waited for. */
const slowMs = 1000;
const pauseMs = 15_000;

/** The machine's free memory, disk space and process IDs. */
export class MachineObservations {
  readonly #deps: MachineObservationsDependencies;
  readonly #collector: StatsCollector;
  /** Monotonic ms before which the runtime is not queried again. */
  #asksAtMs = Number.NEGATIVE_INFINITY;
  #reported: { readonly atMs: number; readonly images: string; readonly containers: string } | undefined;

  constructor(deps: MachineObservationsDependencies) {
    const { clock, files, node } = deps;
    const pods = node.cgroupRoot && cgroupPath(kubepodsCgroup(node.cgroupRoot), node.cgroupDriver);
    this.#deps = deps;
    this.#collector = new StatsCollector({
      clock,
      files,
      pods: () => [],
      system: async () =>
        pods === undefined ? [] : [{ name: "pods", cgroup: pods, pid: undefined, startedMs: undefined }],
    });
  }

  /** @param wanted the runtime is only queried for these */
  async look(wanted: ReadonlySet<Signal>, signal: AbortSignal): Promise<MachineLook> {
    const { files, node } = this.#deps;
    const disksAreWanted = [...wanted].some((name) => /^(?:node|image|container)fs\./u.test(name));
    const places = disksAreWanted ? await this.#places(signal) : undefined;
    const fileSystem = async (path: string | undefined): Promise<FileSystemUsage | undefined> =>
      path === undefined ? undefined : await files.fileSystem(path);
    const [memory, sample, nodeFs, imageFs, containerFs, fileSystems] = await Promise.all([
      this.#memAvailable(),
      this.#collector.read("summary"),
      files.fileSystem(node.rootDirectory),
      fileSystem(places?.images),
      fileSystem(places?.containers),
      this.#fileSystems(places),
    ]);
    const { machine, system } = sample;
    const pods = system.find(({ name }) => name === "pods");
    const { tasks, maxTasks } = machine;
    const found: readonly (readonly [signal: Signal, observation: Observation | undefined])[] = [
      ["memory.available", memory ?? memoryOf(machine.sample)],
      ["allocatableMemory.available", pods && memoryOf(pods.sample)],
      ["nodefs.available", nodeFs && bytesOf(nodeFs)],
      ["nodefs.inodesFree", nodeFs && inodesOf(nodeFs)],
      ["imagefs.available", imageFs && bytesOf(imageFs)],
      ["imagefs.inodesFree", imageFs && inodesOf(imageFs)],
      ["containerfs.available", containerFs && bytesOf(containerFs)],
      ["containerfs.inodesFree", containerFs && inodesOf(containerFs)],
      ["pid.available", tasks === undefined || maxTasks === undefined ? undefined : left(maxTasks - tasks, maxTasks)],
    ];
    const observations = new Map(found.flatMap(([name, seen]) => (seen === undefined ? [] : [[name, seen]])));
    return { observations, fileSystems };
  }

  async #memAvailable(): Promise<Observation | undefined> {
    if (!this.#deps.countsMemAvailable) return undefined;
    const [text] = await this.#deps.files.readTexts(["/proc/meminfo"]);
    const figures = parseMemInfo(text);
    const [available, total] = [figures.get("MemAvailable"), figures.get("MemTotal")];
    return available === undefined || total === undefined ? undefined : left(available, total);
  }

  async #fileSystems(
    places: { readonly images: string; readonly containers: string } | undefined,
  ): Promise<FileSystems | undefined> {
    if (places === undefined) return undefined;
    const { files, node } = this.#deps;
    const paths = [node.rootDirectory, places.images, places.containers];
    const [own, images, containers] = await Promise.all(paths.map((path) => files.fileSystemNumber(path)));
    return fileSystemsOf({ node: own, images, containers });
  }

  /**
   * The file systems of images and of containers' writable layers; undefined: the runtime has not reported them yet. The
   * rest is still observed.
   */
  async #places(signal: AbortSignal): Promise<{ readonly images: string; readonly containers: string } | undefined> {
    const { clock, cri } = this.#deps;
    const nowMs = clock.monotonic();
    const isOld = this.#reported === undefined || nowMs - this.#reported.atMs >= askAgainMs;
    if (isOld && nowMs >= this.#asksAtMs) {
      const response = await cri.images.imageFsInfo({}, { timeoutMs: runtimeLimitMs, signal }).catch(() => undefined);
      signal.throwIfAborted();
      const answeredMs = clock.monotonic();
      if (response === undefined && answeredMs - nowMs >= slowMs) this.#asksAtMs = answeredMs + pauseMs;
      const images = response?.imageFilesystems[0]?.fsId?.mountpoint ?? this.#reported?.images ?? "";
      const containers = response?.containerFilesystems?.[0]?.fsId?.mountpoint ?? this.#reported?.containers ?? images;
      this.#reported = images === "" ? undefined : { atMs: nowMs, images, containers };
    }
    return this.#reported;
  }
}

/** Undefined without a limit: there is no remaining amount. */
function memoryOf({ memory }: CgroupSample): Observation | undefined {
  if (memory?.limit === undefined) return undefined;
  return left(Math.max(0, memory.limit - memory.workingSet), memory.limit);
}

function bytesOf({ availableBytes, capacityBytes }: FileSystemUsage): Observation {
  return left(availableBytes, capacityBytes);
}

/** File systems with dynamic inodes report none. */
function inodesOf({ inodesFree, inodes }: FileSystemUsage): Observation | undefined {
  return inodes === 0 ? undefined : left(inodesFree, inodes);
}

function left(available: number, capacity: number): Observation {
  return { available: BigInt(Math.trunc(available)), capacity: BigInt(Math.trunc(capacity)) };
}
