import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { Places } from "../base/places.ts";
import { settlesBefore } from "../base/settling.ts";
import type { Clock } from "../ports/clock.ts";
import type { StatsFiles, TreeUsage } from "../ports/stats-files.ts";
import { fsStats } from "./summary.ts";
import type { VolumeStats } from "./summary-types.ts";

export interface VolumeUsageDependencies {
  readonly clock: Clock;
  readonly files: Pick<StatsFiles, "fileSystem" | "treeUsage">;
  /** By the volume's project quota; undefined: it has none, and is walked. */
  readonly quotaUsage?: (pod: Pod, directory: string, signal: AbortSignal) => Promise<TreeUsage | undefined>;
  /** Receives the duration of each measurement. */
  readonly measured?: (durationMs: number) => void;
}

export interface VolumeUsageSettings {
  readonly rootDirectory: string;
  /** Interval of measuring a pod's volumes; 0: not measured (volumeStatsAggPeriod). */
  readonly periodMs: number;
}

/** The longest wait for a first or fresh measurement; its result then comes with a later request. */
const firstWaitMs = 2_000;
/** Trees walked concurrently, as long as each takes no longer than this: one that hangs does not delay the others. */
const walks = 2;
const walkPatienceMs = 20_000;

/** Figures of a pod's volumes. */
export interface MeasuredVolumes {
  readonly stats: readonly VolumeStats[];
  /** When the first of them was measured, monotonic ms: the others were later. Undefined: there are none. */
  readonly measuredMs: number | undefined;
}

interface Known {
  atMs: number;
  measured: MeasuredVolumes;
  running: Promise<void> | undefined;
}

/**
 * Usage of pods' volumes (upstream's resource analyzer). Walking a tree is expensive, so each pod is measured once per
 * period, and only on request.
 */
export class VolumeUsage {
  readonly #deps: VolumeUsageDependencies;
  readonly #settings: VolumeUsageSettings;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, Known>();
  readonly #walks: Places;

  constructor(deps: VolumeUsageDependencies, settings: VolumeUsageSettings, signal: AbortSignal) {
    this.#deps = deps;
    this.#settings = settings;
    this.#signal = signal;
    const walking = { kind: "the walk of a volume", limit: walks, patienceMs: walkPatienceMs };
    this.#walks = new Places({ clock: deps.clock }, walking);
  }

  /**
   * The latest figures; none for unmeasurable volumes such as hostPath.
   * @param anew measure now; if that takes too long, the figures are those of before
   */
  async of(pod: Pod, anew = false): Promise<MeasuredVolumes> {
    const directories = volumeDirectories(pod, this.#settings.rootDirectory);
    if (directories.length === 0 || this.#settings.periodMs <= 0) return none;
    const { clock } = this.#deps;
    const { uid } = pod.metadata;
    const known: Known = this.#known.get(uid) ?? { atMs: Number.NEGATIVE_INFINITY, measured: none, running: undefined };
    this.#known.set(uid, known);
    const isWaitedFor = anew || known.atMs === Number.NEGATIVE_INFINITY;
    // A measurement in progress may be too old.
    if (anew) await this.#waitFor(known.running);
    const isDue = anew || clock.monotonic() - known.atMs >= this.#settings.periodMs;
    if (isDue) known.running ??= this.#measure(pod, known, directories);
    if (isWaitedFor) await this.#waitFor(known.running);
    return known.measured;
  }

  async #waitFor(running: Promise<void> | undefined): Promise<void> {
    if (running === undefined) return;
    const { clock } = this.#deps;
    await settlesBefore(running, (late) => clock.timer("a pod's volumes to be measured", firstWaitMs, late));
  }

  keep(uids: ReadonlySet<string>): void {
    for (const uid of this.#known.keys()) if (!uids.has(uid)) this.#known.delete(uid);
  }

  /** Never rejects: unmeasurable volumes are omitted until the next measurement, and a disk that hangs ends this one. */
  async #measure(pod: Pod, known: Known, directories: readonly VolumeDirectory[]): Promise<void> {
    const { clock, files, quotaUsage } = this.#deps;
    const stats: VolumeStats[] = [];
    let firstMs: number | undefined;
    try {
      for (const { name, path } of directories) {
        using _walk = await this.#walks.take("later", this.#signal);
        const beganMs = clock.monotonic();
        const byQuota = await quotaUsage?.(pod, path, this.#signal);
        const used = byQuota ?? (await files.treeUsage(path, this.#signal));
        const fileSystem = await files.fileSystem(path);
        this.#deps.measured?.(clock.monotonic() - beganMs);
        firstMs ??= clock.monotonic();
        if (used !== undefined) stats.push({ name, ...fsStats(clock.now(), fileSystem, used) });
      }
      known.measured = { stats, measuredMs: firstMs };
    } catch {
      // A disk does not answer: what was measured before holds, with its age. Or the node is shutting down.
    }
    known.atMs = clock.monotonic();
    known.running = undefined;
  }
}

const none: MeasuredVolumes = { stats: [], measuredMs: undefined };

interface VolumeDirectory {
  readonly name: string;
  readonly path: string;
}

const plugins = {
  emptyDir: "empty-dir",
  configMap: "configmap",
  secret: "secret",
  downwardAPI: "downward-api",
  projected: "projected",
} as const;

/** Directories of volumes whose content belongs to the node. */
function volumeDirectories({ metadata, spec }: Pod, rootDirectory: string): VolumeDirectory[] {
  return (spec.volumes ?? []).flatMap((volume) => {
    const type = (Object.keys(plugins) as (keyof typeof plugins)[]).find((each) => volume[each] !== undefined);
    if (type === undefined) return [];
    const directory = `${rootDirectory}/pods/${metadata.uid}/volumes/kubernetes.io~${plugins[type]}`;
    return [{ name: volume.name, path: `${directory}/${volume.name}` }];
  });
}

/** Whether a volume counts as ephemeral storage: those in memory do not. */
export function isEphemeral(pod: Pod, name: string): boolean {
  const volume: Volume | undefined = pod.spec.volumes?.find((each) => each.name === name);
  if (volume?.emptyDir !== undefined) return (volume.emptyDir.medium ?? "") === "";
  return volume?.configMap !== undefined;
}
