import { BoundedSources } from "../base/bounded-sources.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { Family, Sample } from "../metrics/family.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { FilesystemUsage } from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import type { FileSystemUsage, StatsFiles, TreeUsage } from "../ports/stats-files.ts";
import { podLogDirectory } from "../runtime/layout/log-paths.ts";
import type { RuntimeWays } from "./runtime-ways.ts";
import type { StatsPod } from "./stats-pods.ts";
import type { ContainerStorage, NodeStorage, PodStorage } from "./storage-types.ts";
import { fsStats } from "./summary.ts";
import type { FsStats, VolumeStats } from "./summary-types.ts";
import { isEphemeral, type VolumeUsage } from "./volume-usage.ts";
import type { MeasuredLayer, WritableLayers } from "./writable-layers.ts";

export interface StorageDependencies {
  readonly clock: Clock;
  readonly files: StatsFiles;
  readonly cri: Cri;
  readonly log: Logger;
  readonly volumes: VolumeUsage;
  readonly layers: Pick<WritableLayers, "measure">;
  /** What is known of a pod's volumes that lead outside it. */
  readonly external: (uid: PodUid) => readonly VolumeStats[];
  readonly rootDirectory: string;
  readonly podLogsRoot: string;
  readonly runtime: Pick<RuntimeWays, "measuresImages">;
}

/** Runtimes measure writable layers at this interval and cache the result. */
const runtimeFreshMs = 10_000;
const runtimeLimitMs = 10_000;
/** How long file systems and each pod are waited for; altogether less than a ranking waits for all. */
const fileSystemLimitMs = 2_000;
const podLimitMs = 5_000;

interface RuntimeUsage {
  /** By container ID. */
  readonly layers: ReadonlyMap<string, FilesystemUsage>;
  readonly images: FilesystemUsage | undefined;
  /** Instead of its own figure for images. */
  readonly imageBytes: number | undefined;
  /** Undefined: on the same file system as images. */
  readonly containers: FilesystemUsage | undefined;
}

const noLayers: ReadonlyMap<string, MeasuredLayer> = new Map();
const nothingKnown: RuntimeUsage = {
  layers: new Map(),
  images: undefined,
  imageBytes: undefined,
  containers: undefined,
};

/** The shared state of one measurement. */
interface Measuring {
  /** The pods' directory's. */
  readonly fileSystem: FileSystemUsage | undefined;
  readonly usage: RuntimeUsage;
  /** Writable layers that were measured now, by container ID: instead of the runtime's figures. */
  readonly layers: ReadonlyMap<string, MeasuredLayer>;
  /** File systems of writable layers by mount point: each is queried once. */
  readonly places: Map<string, Promise<FileSystemUsage | undefined>>;
  readonly anew: boolean;
}

/** Disk usage of the node, its images and its pods: the runtime's parts from the runtime, the rest from the disks. */
export class StorageStats {
  readonly #deps: StorageDependencies;
  readonly #signal: AbortSignal;
  #runtime: { readonly atMs: number; readonly usage: Promise<RuntimeUsage> } | undefined;
  /** The runtime's last error; logged once. */
  #problem = "";
  readonly #fileSystems: BoundedSources;
  readonly #ofEach: BoundedSources;
  /**
   * Pods and file systems that were not measured when that was last tried, each logged once, with the UID of the pod that
   * they were asked for.
   */
  readonly #missed = new Map<string, string | undefined>();

  /** @param signal cancels measurements */
  constructor(deps: StorageDependencies, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    this.#fileSystems = new BoundedSources(deps.clock, fileSystemLimitMs);
    this.#ofEach = new BoundedSources(deps.clock, podLimitMs);
  }

  /** The node and its running pods. */
  async collect(pods: readonly StatsPod[]): Promise<NodeStorage> {
    const { clock, rootDirectory } = this.#deps;
    this.#forgetOthers(pods);
    const [fileSystem, usage] = await Promise.all([this.#fileSystem(rootDirectory), this.#runtimeUsage()]);
    const timeMs = clock.now();
    const used = fileSystem && { bytes: fileSystem.usedBytes, inodes: fileSystem.inodes - fileSystem.inodesFree };
    const [runtime, ofPods] = await Promise.all([
      this.#runtimeFileSystems(usage),
      this.#ofPods(pods, { fileSystem, usage, layers: noLayers, anew: false }),
    ]);
    return { fs: used && fsStats(timeMs, fileSystem, used), ...runtime, pods: ofPods };
  }

  /** What is free is as new as that of the node's own file system, which may be the same one. */
  async #runtimeFileSystems(usage: RuntimeUsage): Promise<Pick<NodeStorage, "imageFs" | "containerFs">> {
    const whole = async (used: FilesystemUsage | undefined): Promise<FsStats | undefined> =>
      used && usageStats(used, await this.#fileSystem(used.fsId?.mountpoint ?? ""), this.#deps.clock);
    const [images, containers] = await Promise.all([whole(usage.images), whole(usage.containers)]);
    const { imageBytes } = usage;
    const imageFs = images && imageBytes !== undefined ? { ...images, usedBytes: imageBytes } : images;
    return { imageFs, containerFs: containers ?? imageFs };
  }

  /**
   * Some pods only. One that cannot be measured in time is missing, and so it is in the next ones, as long as that hangs.
   * @param running all running pods
   * @param ask anew: measure now where possible. layers: include writable layers, which requires the runtime
   */
  async ofPods(
    running: readonly StatsPod[],
    uids: ReadonlySet<string>,
    { anew, layers }: { readonly anew: boolean; readonly layers: boolean },
  ): Promise<ReadonlyMap<string, PodStorage>> {
    this.#forgetOthers(running);
    const pods = running.filter(({ ref }) => uids.has(ref.uid));
    if (anew) this.#runtime = undefined;
    const containers = pods.flatMap((pod) => pod.containers.map(({ id }) => id));
    const [fileSystem, measured] = await Promise.all([
      this.#fileSystem(this.#deps.rootDirectory),
      anew && layers ? this.#deps.layers.measure(containers) : noLayers,
    ]);
    const asks = layers && containers.some((id) => !measured.has(id));
    const usage = asks ? await this.#runtimeUsage() : nothingKnown;
    return await this.#ofPods(pods, { fileSystem, usage, layers: measured, anew });
  }

  /** Forgets what is known of pods that are gone. */
  #forgetOthers(running: readonly StatsPod[]): void {
    const uids = new Set<string>(running.map(({ ref }) => ref.uid));
    this.#deps.volumes.keep(uids);
    for (const [source, uid] of this.#missed) if (uid !== undefined && !uids.has(uid)) this.#missed.delete(source);
  }

  async #ofPods(pods: readonly StatsPod[], seen: Omit<Measuring, "places">): Promise<Map<string, PodStorage>> {
    const places = new Map<string, Promise<FileSystemUsage | undefined>>();
    const measured = pods.map(async (pod) => {
      const { uid, namespace, name } = pod.ref;
      const work = async (): Promise<PodStorage> => await this.#ofPod(pod, { ...seen, places });
      const storage = await this.#read(this.#ofEach, `the storage of ${namespace}/${name} (${uid})`, work, uid);
      return storage === undefined ? [] : [[uid, storage] as const];
    });
    return new Map((await Promise.all(measured)).flat());
  }

  async #fileSystem(path: string, uid?: string): Promise<FileSystemUsage | undefined> {
    if (path === "") return undefined;
    const work = async (): Promise<FileSystemUsage | undefined> => await this.#deps.files.fileSystem(path);
    return await this.#read(this.#fileSystems, `the file system at ${path}`, work, uid);
  }

  /** @param uid the pod's that it is read for; undefined: it is the node's */
  async #read<T>(
    sources: BoundedSources,
    source: string,
    work: () => Promise<T>,
    uid: string | undefined,
  ): Promise<T | undefined> {
    let why: string | undefined;
    const result = await sources.read(source, work, (problem) => (why = problem));
    this.#signal.throwIfAborted();
    if (why === undefined) this.#missed.delete(source);
    else if (!this.#missed.has(source)) {
      this.#missed.set(source, uid);
      this.#deps.log.warn("cannot measure storage", { source, error: why });
    }
    return result;
  }

  /** Log bytes of each container of the running pods, including rotated files. */
  async logFamily(pods: readonly StatsPod[]): Promise<Family> {
    this.#forgetOthers(pods);
    const measured = pods.flatMap(({ ref, pod, containers }) => {
      const directory = podLogDirectory(this.#deps.podLogsRoot, pod.metadata);
      return containers.map(async ({ name }): Promise<Sample[]> => {
        const path = `${directory}/${name}`;
        const work = async (): Promise<TreeUsage | undefined> => await this.#deps.files.filesUsage(path);
        const used = await this.#read(this.#fileSystems, `the logs in ${path}`, work, ref.uid);
        return used === undefined ? [] : [{ labels: [ref.uid, ref.namespace, ref.name, name], value: used.bytes }];
      });
    });
    const samples = (await Promise.all(measured)).flat();
    return {
      name: "kubelet_container_log_filesystem_used_bytes",
      help: "Disk usage of a container's logs",
      type: "gauge",
      stability: "ALPHA",
      labels: ["uid", "namespace", "pod", "container"],
      samples,
    };
  }

  async #ofPod(pod: StatsPod, measuring: Measuring): Promise<PodStorage> {
    const { fileSystem, anew } = measuring;
    const { clock, files, volumes, rootDirectory, podLogsRoot } = this.#deps;
    const timeMs = clock.now();
    const logDirectory = podLogDirectory(podLogsRoot, pod.pod.metadata);
    const used: TreeUsage[] = [];
    const containers = new Map<string, ContainerStorage>();
    const measuringVolumes = volumes.of(pod.pod, anew);
    for (const container of pod.containers) {
      const logs = await files.filesUsage(`${logDirectory}/${container.name}`);
      if (logs !== undefined) used.push(logs);
      const rootfs = await this.#layerStats(pod.ref.uid, container.id, measuring);
      if (rootfs !== undefined) used.push({ bytes: rootfs.usedBytes ?? 0, inodes: rootfs.inodesUsed ?? 0 });
      containers.set(container.id, {
        name: container.name,
        rootfs,
        logs: logs && fsStats(timeMs, fileSystem, logs),
      });
    }
    const { stats: volumeStats, measuredMs: volumesMs } = await measuringVolumes;
    for (const volume of volumeStats) {
      if (!isEphemeral(pod.pod, volume.name)) continue;
      used.push({ bytes: volume.usedBytes ?? 0, inodes: volume.inodesUsed ?? 0 });
    }
    const podDirectory = `${rootDirectory}/pods/${pod.ref.uid}`;
    for (const own of [
      await files.filesUsage(logDirectory),
      await files.treeUsage(`${podDirectory}/etc-hosts`, this.#signal),
    ]) {
      if (own !== undefined) used.push(own);
    }
    const sum = used.reduce((a, b) => ({ bytes: a.bytes + b.bytes, inodes: a.inodes + b.inodes }), {
      bytes: 0,
      inodes: 0,
    });
    const allVolumes = [...volumeStats, ...this.#deps.external(pod.pod.metadata.uid)];
    return { containers, volumes: allVolumes, volumesMs, ephemeral: fsStats(timeMs, fileSystem, sum) };
  }

  async #layerStats(uid: string, container: string, measuring: Measuring): Promise<FsStats | undefined> {
    const { clock } = this.#deps;
    const measured = measuring.layers.get(container);
    if (measured !== undefined) return fsStats(clock.now(), await this.#place(measured.path, uid, measuring), measured);
    const layer = measuring.usage.layers.get(container);
    return layer && usageStats(layer, await this.#place(layer.fsId?.mountpoint ?? "", uid, measuring), clock);
  }

  async #place(mountpoint: string, uid: string, { places }: Measuring): Promise<FileSystemUsage | undefined> {
    let place = places.get(mountpoint);
    if (place === undefined) {
      place = this.#fileSystem(mountpoint, uid);
      places.set(mountpoint, place);
    }
    return await place;
  }

  async #runtimeUsage(): Promise<RuntimeUsage> {
    const nowMs = this.#deps.clock.monotonic();
    if (this.#runtime === undefined || nowMs - this.#runtime.atMs > runtimeFreshMs) {
      this.#runtime = { atMs: nowMs, usage: this.#askRuntime() };
    }
    return await this.#runtime.usage;
  }

  /** Never rejects: figures that a runtime does not report are omitted. */
  async #askRuntime(): Promise<RuntimeUsage> {
    const { cri, log, runtime } = this.#deps;
    const options = { timeoutMs: runtimeLimitMs, signal: this.#signal };
    const problems: string[] = [];
    const attempt = async <T>(call: Promise<T>): Promise<T | undefined> => {
      return await call.catch((error: unknown) => {
        problems.push(errorMessage(error));
        return undefined;
      });
    };
    const [containers, images, listed] = await Promise.all([
      attempt(cri.runtime.listContainerStats({}, options)),
      attempt(cri.images.imageFsInfo({}, options)),
      runtime.measuresImages ? undefined : attempt(cri.images.listImages({}, options)),
    ]);
    const problem = problems.join("; ");
    if (problem !== this.#problem && problem !== "") {
      log.warn("cannot get container statistics from the runtime", { error: problem });
    }
    this.#problem = problem;
    const layers = new Map<string, FilesystemUsage>();
    for (const { attributes, writableLayer } of containers?.stats ?? []) {
      if (attributes !== undefined && writableLayer !== undefined) layers.set(attributes.id, writableLayer);
    }
    return {
      layers,
      images: images?.imageFilesystems[0],
      imageBytes: listed && totalSize(listed.images),
      containers: images?.containerFilesystems[0],
    };
  }
}

/** Shared layers count for each image. */
function totalSize(images: readonly { readonly size: bigint }[]): number {
  return Number(images.reduce((sum, { size }) => sum + size, 0n));
}

function usageStats(usage: FilesystemUsage, fileSystem: FileSystemUsage | undefined, clock: Clock): FsStats {
  const { timestamp, usedBytes, inodesUsed } = usage;
  return fsStats(timestamp > 0n ? Number(timestamp / 1_000_000n) : clock.now(), fileSystem, {
    bytes: usedBytes && Number(usedBytes.value),
    inodes: inodesUsed && Number(inodesUsed.value),
  });
}
