import { Emitter } from "../base/emitter.ts";
import type { PodUid } from "../base/ids.ts";
import type { Family } from "../metrics/family.ts";
import { silentVolumeFamily } from "../metrics/storage-metrics.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Processes } from "../ports/processes.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { cgroupPath, kubepodsCgroup, qosCgroup } from "../resources/cgroup-names.ts";
import type { QosClass } from "../resources/qos.ts";
import { StatsCollector } from "../stats/collector.ts";
import type { Depth } from "../stats/depth.ts";
import type { NodeSample } from "../stats/node-sample.ts";
import { runtimeWays } from "../stats/runtime-ways.ts";
import { SandboxImages } from "../stats/sandbox-images.ts";
import { hasRunningContainer, type StatsPod, statsPod } from "../stats/stats-pods.ts";
import type { NodeStorage, PodStorage } from "../stats/storage-types.ts";
import { StorageStats } from "../stats/storage.ts";
import { summaryOf } from "../stats/summary.ts";
import type { Summary, VolumeStats } from "../stats/summary-types.ts";
import { SystemCgroups } from "../stats/system-cgroups.ts";
import { volumeFamilies } from "../stats/volume-metrics.ts";
import { VolumeUsage } from "../stats/volume-usage.ts";
import { WritableLayers } from "../stats/writable-layers.ts";
import type { Node } from "./node.ts";
import { silentVolume, summaryVolume } from "./volume-figures.ts";

export interface NodeStatsDependencies {
  readonly clock: Clock;
  readonly processes: Processes;
  readonly files: StatsFiles;
  readonly cri: Cri;
  readonly log: Logger;
  /** Observes the duration of volume measurements. */
  readonly volumeMeasured?: (durationMs: number) => void;
}

/** The configuration for statistics. */
export interface StatsSettings {
  /** Empty: detected. */
  readonly kubeletCgroups: string;
  readonly runtimeCgroups: string;
  /** Empty: none. */
  readonly systemCgroups: string;
  /** 0: volumes are not measured. */
  readonly volumePeriodMs: number;
}

/** The node's facts for statistics. */
export type StatsContext = Pick<
  NodeContext,
  "nodeName" | "rootDirectory" | "podLogsRoot" | "cgroupRoot" | "cgroupDriver"
>;

/** QoS classes whose pods' cgroups have one above them, below that of all pods. */
const ownCgroupClasses: readonly QosClass[] = ["Burstable", "BestEffort"];

/** What has been measured of all running pods. */
export interface Measured {
  readonly sample?: NodeSample;
  readonly stored?: { readonly pods: readonly StatsPod[]; readonly storage: NodeStorage };
}

type MeasuredNode = Pick<Node, "nodePods" | "measuredVolumes" | "quotaUsage" | "silentVolumes">;

/** Usage statistics of a node and its pods. Nothing is read without a request. */
export class NodeStats {
  readonly #clock: Clock;
  readonly #nodeName: string;
  #node: MeasuredNode | undefined;
  readonly #pods: () => readonly StatsPod[];
  readonly #collector: StatsCollector;
  readonly #storage: StorageStats;
  readonly #layers: WritableLayers;
  readonly #sandboxImages: SandboxImages;
  readonly #measured = new Emitter<Measured>();

  /** @param signal ends a measurement */
  constructor(
    deps: NodeStatsDependencies,
    node: StatsContext,
    runtimeName: string,
    settings: StatsSettings,
    signal: AbortSignal,
  ) {
    const { clock, processes, files, cri, log } = deps;
    const { nodeName, rootDirectory, podLogsRoot, cgroupRoot, cgroupDriver } = node;
    const runtime = runtimeWays(runtimeName);
    this.#clock = clock;
    this.#nodeName = nodeName;
    this.#pods = () =>
      (this.#node?.nodePods() ?? []).flatMap(({ pod, observed }) => {
        return statsPod(pod, observed, { cgroupRoot, cgroupDriver, runtime }) ?? [];
      });
    const system = new SystemCgroups(
      { clock, files, processes },
      {
        kubelet: settings.kubeletCgroups || undefined,
        runtime: settings.runtimeCgroups || undefined,
        misc: settings.systemCgroups || undefined,
        pods: cgroupRoot && cgroupPath(kubepodsCgroup(cgroupRoot), cgroupDriver),
        qosClasses:
          cgroupRoot === undefined
            ? []
            : ownCgroupClasses.map((each) => cgroupPath(qosCgroup(cgroupRoot, each), cgroupDriver)),
        runtimeProgram: runtime.program,
        startedMs: clock.now(),
      },
    );
    this.#collector = new StatsCollector({ clock, files, pods: this.#pods, system: () => system.find() });
    const volumes = new VolumeUsage(
      {
        clock,
        files,
        quotaUsage: async (...of) => await this.#node?.quotaUsage(...of),
        ...(deps.volumeMeasured && { measured: deps.volumeMeasured }),
      },
      { rootDirectory, periodMs: settings.volumePeriodMs },
      signal,
    );
    const external = (uid: PodUid): VolumeStats[] => (this.#node?.measuredVolumes(uid) ?? []).map(summaryVolume);
    this.#layers = new WritableLayers({ clock, files, processes: () => this.#processes() }, signal);
    const layers = this.#layers;
    const storage = { clock, files, cri, log, volumes, layers, external, rootDirectory, podLogsRoot, runtime };
    this.#sandboxImages = new SandboxImages({ clock, runtime: cri.runtime }, signal);
    this.#storage = new StorageStats(storage, signal);
  }

  /** Sets the pods to measure. To be called once. */
  connect(node: MeasuredNode): void {
    this.#node = node;
  }

  async sample(depth: Depth): Promise<NodeSample> {
    const sample = await this.#collector.collect(depth);
    this.#measured.emit({ sample });
    return sample;
  }

  async storage(): Promise<NodeStorage> {
    const pods = this.#running();
    const storage = await this.#storage.collect(pods);
    this.#measured.emit({ stored: { pods, storage } });
    return storage;
  }

  /** Calls back with what has been measured for others, until disposed of. */
  onMeasured(listener: (measured: Measured) => void): Disposable {
    return this.#measured.on(listener);
  }

  /** The node and its pods as they are now. */
  async sampleAnew(depth: Depth): Promise<NodeSample> {
    return await this.#collector.read(depth);
  }

  /** What pods that run have on their disks, by UID. @param ask as `StorageStats.ofPods` takes it */
  async storageOf(
    uids: ReadonlySet<string>,
    ask: { readonly anew: boolean; readonly layers: boolean },
  ): Promise<ReadonlyMap<string, PodStorage>> {
    return await this.#storage.ofPods(this.#running(), uids, ask);
  }

  /** As `SandboxImages.of` answers. */
  async sandboxImages(): ReturnType<SandboxImages["of"]> {
    return await this.#sandboxImages.of(this.#pods().map(({ sandboxId }) => sandboxId));
  }

  /** As `WritableLayers.left` answers. */
  async layersLeft(containers: readonly string[]): ReturnType<WritableLayers["left"]> {
    return await this.#layers.left(containers);
  }

  #running(): readonly StatsPod[] {
    return this.#pods().filter(hasRunningContainer);
  }

  /** One process of each running container, by container ID. */
  async #processes(): Promise<ReadonlyMap<string, number>> {
    const { pods } = await this.sample("summary");
    return new Map(
      pods.flatMap(({ containers }) =>
        containers.flatMap(({ container: { id }, sample: { pids } }) => {
          const [pid] = pids;
          return pid === undefined ? [] : [[id, pid] as const];
        }),
      ),
    );
  }

  /** Disk usage of containers' logs, for `/metrics`. */
  async logFamily(): Promise<Family> {
    return await this.#storage.logFamily(this.#running());
  }

  /** Of claims' volumes, and of those that do not answer, for `/metrics`. */
  volumeFamilies(): Family[] {
    const node = this.#node;
    if (node === undefined) return [];
    const volumes = this.#running().flatMap(({ pod }) => node.measuredVolumes(pod.metadata.uid).map(summaryVolume));
    const nowMs = this.#clock.monotonic();
    return [
      ...volumeFamilies(volumes),
      silentVolumeFamily(node.silentVolumes().map((wait) => silentVolume(wait, nowMs))),
    ];
  }

  /** `/stats/summary` */
  async summary(onlyCpuAndMemory: boolean): Promise<Summary> {
    if (onlyCpuAndMemory) return summaryOf(this.#nodeName, await this.sample("resources"));
    const [sample, storage] = await Promise.all([this.sample("summary"), this.storage()]);
    return summaryOf(this.#nodeName, sample, storage);
  }
}
