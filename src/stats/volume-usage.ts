import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { Clock } from "../ports/clock.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { fsStats } from "./summary.ts";
import type { VolumeStats } from "./summary-types.ts";

export interface VolumeUsageDependencies {
  readonly clock: Clock;
  readonly files: StatsFiles;
  /** Tells how long each measuring took. */
  readonly measured?: (durationMs: number) => void;
}

export interface VolumeUsageSettings {
  readonly rootDirectory: string;
  /** Between two looks at a pod's volumes; 0: they are not measured (volumeStatsAggPeriod). */
  readonly periodMs: number;
}

/** Who asks for the first time, or anew, waits no longer than this; the figures come with a later answer then. */
const firstWaitMs = 2_000;
/** Trees walked at a time. */
const walks = 2;

interface Known {
  atMs: number;
  stats: readonly VolumeStats[];
  running: Promise<void> | undefined;
}

/**
 * How much pods' volumes hold (upstream's resource analyzer). Walking a tree is dear, so a pod's are looked at once a
 * period, and only while somebody asks.
 */
export class VolumeUsage {
  readonly #deps: VolumeUsageDependencies;
  readonly #settings: VolumeUsageSettings;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, Known>();
  readonly #walks = new Semaphore(walks);

  constructor(deps: VolumeUsageDependencies, settings: VolumeUsageSettings, signal: AbortSignal) {
    this.#deps = deps;
    this.#settings = settings;
    this.#signal = signal;
  }

  /**
   * The latest figures; none for volumes that nobody can measure, such as a hostPath.
   * @param anew measured now, unless that takes longer than somebody may wait
   */
  async of(pod: Pod, anew = false): Promise<readonly VolumeStats[]> {
    const directories = volumeDirectories(pod, this.#settings.rootDirectory);
    if (directories.length === 0 || this.#settings.periodMs <= 0) return [];
    const { clock } = this.#deps;
    const { uid } = pod.metadata;
    const known: Known = this.#known.get(uid) ?? { atMs: Number.NEGATIVE_INFINITY, stats: [], running: undefined };
    this.#known.set(uid, known);
    const isWaitedFor = anew || known.atMs === Number.NEGATIVE_INFINITY;
    // What is being measured already may have begun before that what is asked about.
    if (anew) await this.#waitFor(known.running);
    const isDue = anew || clock.monotonic() - known.atMs >= this.#settings.periodMs;
    if (isDue) known.running ??= this.#measure(known, directories);
    if (isWaitedFor) await this.#waitFor(known.running);
    return known.stats;
  }

  async #waitFor(running: Promise<void> | undefined): Promise<void> {
    if (running === undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    using _limit = this.#deps.clock.timer("a pod's volumes to be measured", firstWaitMs, resolve);
    await Promise.race([running, promise]);
  }

  /** Forgets pods that are gone. */
  keep(uids: ReadonlySet<string>): void {
    for (const uid of this.#known.keys()) if (!uids.has(uid)) this.#known.delete(uid);
  }

  /** Never rejects: unmeasurable volumes are omitted until the next measurement. */
  async #measure(known: Known, directories: readonly VolumeDirectory[]): Promise<void> {
    const { clock, files } = this.#deps;
    const stats: VolumeStats[] = [];
    try {
      for (const { name, path } of directories) {
        using _walk = await this.#walks.acquire(this.#signal);
        const beganMs = clock.monotonic();
        const [used, fileSystem] = await Promise.all([files.treeUsage(path, this.#signal), files.fileSystem(path)]);
        this.#deps.measured?.(clock.monotonic() - beganMs);
        if (used !== undefined) stats.push({ name, ...fsStats(clock.now(), fileSystem, used) });
      }
      known.stats = stats;
    } catch {
      // The node ends.
    }
    known.atMs = clock.monotonic();
    known.running = undefined;
  }
}

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

/** Where the volumes lie whose content is the node's own. */
function volumeDirectories({ metadata, spec }: Pod, rootDirectory: string): VolumeDirectory[] {
  return (spec.volumes ?? []).flatMap((volume) => {
    const type = (Object.keys(plugins) as (keyof typeof plugins)[]).find((each) => volume[each] !== undefined);
    if (type === undefined) return [];
    const directory = `${rootDirectory}/pods/${metadata.uid}/volumes/kubernetes.io~${plugins[type]}`;
    return [{ name: volume.name, path: `${directory}/${volume.name}` }];
  });
}

/** Whether a volume counts against the node's ephemeral storage: what lies in memory does not. */
export function isEphemeral(pod: Pod, name: string): boolean {
  const volume: Volume | undefined = pod.spec.volumes?.find((each) => each.name === name);
  if (volume?.emptyDir !== undefined) return (volume.emptyDir.medium ?? "") === "";
  return volume?.configMap !== undefined;
}
