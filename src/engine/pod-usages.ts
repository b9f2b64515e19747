import type { Pod } from "../api/pod.ts";
import { withDeadline } from "../base/deadline.ts";
import type {
  DiskUsage,
  LayersLeft,
  MeasuredKind,
  PodUsage,
  PodUsageReader,
  VolumeUsage,
} from "../eviction/pod-usage.ts";
import { hasLayerLimit } from "../eviction/storage-limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodSample } from "../stats/node-sample.ts";
import type { PodStorage } from "../stats/storage-types.ts";
import type { FsStats } from "../stats/summary-types.ts";
import { isEphemeral } from "../stats/volume-usage.ts";
import type { NodeStats } from "./node-stats.ts";

const limitMs = 20_000;

/** What pods use, for evictions, by the node's statistics. */
export class PodUsages implements PodUsageReader {
  readonly #clock: Clock;
  readonly #stats: Pick<NodeStats, "sampleAnew" | "storageOf" | "layersLeft" | "onMeasured">;

  constructor(clock: Clock, stats: Pick<NodeStats, "sampleAnew" | "storageOf" | "layersLeft" | "onMeasured">) {
    this.#clock = clock;
    this.#stats = stats;
  }

  async readRunning(pods: readonly Pod[], signal: AbortSignal): Promise<ReadonlyMap<string, PodUsage>> {
    const read = (): ReturnType<NodeStats["sampleAnew"]> => this.#stats.sampleAnew("summary");
    const sample = await withDeadline(this.#clock, "pods' memory to be measured", limitMs, signal, read);
    const wanted = new Set(pods.map(({ metadata }) => metadata.uid as string));
    const found = sample.pods.filter(({ pod }) => wanted.has(pod.ref.uid));
    return new Map(found.map((pod) => [pod.pod.ref.uid, runningUsage(pod)]));
  }

  async readStorage(
    pods: readonly Pod[],
    how: "anew" | "kept" | "limits",
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, PodUsage>> {
    const byUid = new Map(pods.map((pod) => [pod.metadata.uid as string, pod]));
    const anew = how === "anew";
    const layers = how !== "limits" || pods.some(hasLayerLimit);
    const read = (): ReturnType<NodeStats["storageOf"]> =>
      this.#stats.storageOf(new Set(byUid.keys()), { anew, layers });
    const storage = await withDeadline(this.#clock, "pods' storage to be measured", limitMs, signal, read);
    const usages = [...storage].flatMap(([uid, own]) => {
      const pod = byUid.get(uid);
      return pod === undefined ? [] : [[uid, storageUsage(pod, own)] as const];
    });
    return new Map(usages);
  }

  onMeasured(listener: (kind: MeasuredKind, read: () => ReadonlyMap<string, PodUsage>) => void): Disposable {
    return this.#stats.onMeasured(({ sample, stored }) => {
      if (sample !== undefined) {
        listener("running", () => new Map(sample.pods.map((each) => [each.pod.ref.uid, runningUsage(each)])));
      }
      if (stored === undefined) return;
      const { pods, storage } = stored;
      const usages = (): [string, PodUsage][] =>
        pods.flatMap(({ ref: { uid }, pod }) => {
          const own = storage.pods.get(uid);
          return own === undefined ? [] : [[uid, storageUsage(pod, own)]];
        });
      listener("storage", () => new Map(usages()));
    });
  }

  async layersLeft(containers: readonly string[]): Promise<LayersLeft> {
    return await this.#stats.layersLeft(containers);
  }
}

function runningUsage({ pod, sample, containers }: PodSample): PodUsage {
  // A running container has a process: one without was not found, or has just ended.
  const isWhole =
    containers.length === pod.containers.length && containers.every(({ sample: own }) => own.pids.length > 0);
  return {
    memoryBytes: sample?.memory?.workingSet,
    swapBytes: sample?.memory?.swap,
    processes: isWhole ? containers.reduce((sum, { sample: own }) => sum + own.pids.length, 0) : undefined,
    containers: containers.map(({ container, sample: own }) => {
      return { name: container.name, memoryBytes: own.memory?.workingSet };
    }),
    volumes: [],
  };
}

function storageUsage(pod: Pod, { containers, volumes, volumesMs, ephemeral }: PodStorage): PodUsage {
  const measured = volumes.map((volume): VolumeUsage => {
    return { name: volume.name, isLocal: isEphemeral(pod, volume.name), ...diskUsage(volume) };
  });
  const unmeasured = (pod.spec.volumes ?? [])
    .filter(({ name }) => isEphemeral(pod, name) && !volumes.some((volume) => volume.name === name))
    .map(({ name }): VolumeUsage => ({ name, isLocal: true }));
  return {
    containers: [...containers.values()].map(({ name, rootfs, logs }) => {
      // Without a directory there are no logs.
      return { name, rootfs: diskUsage(rootfs), logs: diskUsage(logs) ?? nothing };
    }),
    volumes: [...measured, ...unmeasured],
    volumesMs,
    ephemeralBytes: ephemeral?.usedBytes,
  };
}

const nothing: DiskUsage = { bytes: 0, inodes: 0 };

function diskUsage(stats: FsStats | undefined): DiskUsage | undefined {
  if (stats?.usedBytes === undefined) return undefined;
  return { bytes: stats.usedBytes, inodes: stats.inodesUsed };
}
