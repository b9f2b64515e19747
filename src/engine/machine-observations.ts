import { BoundedSources } from "../base/bounded-sources.ts";
import { parseMemInfo } from "../base/kernel-text.ts";
import { fileSystemsOf } from "../eviction/file-systems.ts";
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
/** A runtime that takes this long to fail is left alone for a while: disks are not observed while it is waited for. */
const slowMs = 1000;
const pauseMs = 15_000;
/** How long each source is waited for: others, such as memory, are not acted upon meanwhile. */
const sourceLimitMs = 2000;

/** Where images and containers' writable layers are. */
interface Places {
  readonly images: string;
  readonly containers: string;
}

interface Disk {
  readonly usage: FileSystemUsage | undefined;
  /** Its number (st_dev). */
  readonly number: number | undefined;
}

/** Tells why a source was not measured. */
type Failed = (source: string, why: string) => void;

/**
 * The machine's free memory, disk space and process IDs. Each source is waited for by itself: one that stalls, such as a
 * disk that does not answer, is missing, and the others are there.
 */
export class MachineObservations {
  readonly #deps: MachineObservationsDependencies;
  readonly #collector: StatsCollector;
  readonly #sources: BoundedSources;
  /** Monotonic ms before which the runtime is not queried again. */
  #asksAtMs = Number.NEGATIVE_INFINITY;
  #reported: (Places & { readonly atMs: number }) | undefined;

  constructor(deps: MachineObservationsDependencies) {
    const { clock, files, node } = deps;
    const pods = node.cgroupRoot && cgroupPath(kubepodsCgroup(node.cgroupRoot), node.cgroupDriver);
    this.#deps = deps;
    this.#sources = new BoundedSources(clock, sourceLimitMs);
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
    const disksAreWanted = [...wanted].some((name) => /^(?:node|image|container)fs\./u.test(name));
    const unmeasured = new Map<string, string>();
    const failed: Failed = (source, why) => void unmeasured.set(source, why);
    const [kernel, disks] = await Promise.all([
      this.#kernel(failed),
      this.#disks(disksAreWanted ? this.#places(signal, failed) : undefined, failed),
    ]);
    signal.throwIfAborted();
    const { node, images, containers } = disks;
    const found: readonly (readonly [signal: Signal, observation: Observation | undefined])[] = [
      ...kernel,
      ["nodefs.available", node.usage && bytesOf(node.usage)],
      ["nodefs.inodesFree", node.usage && inodesOf(node.usage)],
      ["imagefs.available", images?.usage && bytesOf(images.usage)],
      ["imagefs.inodesFree", images?.usage && inodesOf(images.usage)],
      ["containerfs.available", containers?.usage && bytesOf(containers.usage)],
      ["containerfs.inodesFree", containers?.usage && inodesOf(containers.usage)],
    ];
    const observations = new Map(found.flatMap(([name, seen]) => (seen === undefined ? [] : [[name, seen]])));
    const numbers = { node: node.number, images: images?.number, containers: containers?.number };
    return { observations, fileSystems: disksAreWanted ? fileSystemsOf(numbers) : undefined, unmeasured };
  }

  async #kernel(failed: Failed): Promise<readonly (readonly [signal: Signal, observation: Observation | undefined])[]> {
    const figures = async () => await Promise.all([this.#memAvailable(), this.#collector.read("summary")]);
    const source = "memory and processes";
    const read = await this.#sources.read(source, figures, (why) => failed(source, why));
    if (read === undefined) return [];
    const [memory, { machine, system }] = read;
    const pods = system.find(({ name }) => name === "pods");
    const { tasks, maxTasks } = machine;
    return [
      ["memory.available", memory ?? memoryOf(machine.sample)],
      ["allocatableMemory.available", pods && memoryOf(pods.sample)],
      ["pid.available", tasks === undefined || maxTasks === undefined ? undefined : left(maxTasks - tasks, maxTasks)],
    ];
  }

  /** Paths are read once each, and apart from each other. */
  async #disks(
    asked: Promise<Places | undefined> | undefined,
    failed: Failed,
  ): Promise<{ readonly node: Disk; readonly images: Disk | undefined; readonly containers: Disk | undefined }> {
    const { rootDirectory } = this.#deps.node;
    const reads = new Map<string, Promise<Disk>>();
    const read = async (path: string): Promise<Disk> => {
      const disk = reads.get(path) ?? this.#disk(path, failed);
      reads.set(path, disk);
      return await disk;
    };
    const own = read(rootDirectory);
    const places = await asked;
    const [node, images, containers] = await Promise.all([
      own,
      places && read(places.images),
      places && read(places.containers),
    ]);
    return { node, images, containers };
  }

  async #disk(path: string, failed: Failed): Promise<Disk> {
    const { files } = this.#deps;
    const source = `the file system at ${path}`;
    // One after the other: a disk that does not answer holds one thread.
    const work = async (): Promise<Disk> => {
      const usage = await files.fileSystem(path);
      return { usage, number: usage && (await files.fileSystemNumber(path)) };
    };
    const disk = await this.#sources.read(source, work, (why) => failed(source, why));
    if (disk !== undefined && disk.usage === undefined) failed(source, "cannot be read");
    return disk ?? { usage: undefined, number: undefined };
  }

  async #memAvailable(): Promise<Observation | undefined> {
    if (!this.#deps.countsMemAvailable) return undefined;
    const [text] = await this.#deps.files.readTexts(["/proc/meminfo"]);
    const figures = parseMemInfo(text);
    const [available, total] = [figures.get("MemAvailable"), figures.get("MemTotal")];
    return available === undefined || total === undefined ? undefined : left(available, total);
  }

  /**
   * The file systems of images and of containers' writable layers, as last reported; undefined: the runtime has not
   * reported them yet. The rest is still observed.
   */
  async #places(signal: AbortSignal, failed: Failed): Promise<Places | undefined> {
    const nowMs = this.#deps.clock.monotonic();
    const isOld = this.#reported === undefined || nowMs - this.#reported.atMs >= askAgainMs;
    const source = "the runtime's ImageFsInfo";
    if (isOld && nowMs >= this.#asksAtMs) {
      await this.#sources.read(
        source,
        async () => await this.#ask(signal),
        () => {},
      );
    }
    if (this.#reported === undefined) failed(source, "has not said where images are");
    return this.#reported;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { clock, cri } = this.#deps;
    const nowMs = clock.monotonic();
    const response = await cri.images.imageFsInfo({}, { timeoutMs: runtimeLimitMs, signal }).catch(() => undefined);
    const answeredMs = clock.monotonic();
    if (response === undefined && answeredMs - nowMs >= slowMs) this.#asksAtMs = answeredMs + pauseMs;
    const images = response?.imageFilesystems[0]?.fsId?.mountpoint ?? this.#reported?.images ?? "";
    const containers = response?.containerFilesystems?.[0]?.fsId?.mountpoint ?? this.#reported?.containers ?? images;
    this.#reported = images === "" ? undefined : { atMs: nowMs, images, containers };
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
