import type { Pod } from "../api/pod.ts";
import type { Clock } from "../ports/clock.ts";
import { type FileSystems, isOfDisk, storageParts } from "./file-systems.ts";
import { type MeasuredKind, measuredMs, type PodUsage, type PodUsageReader, usageOf } from "./pod-usage.ts";
import { resourceOf, type Signal } from "./thresholds.ts";
import { keptMs, UsageHistory, type UsageSample } from "./usage-history.ts";

export interface RecentUsageDependencies {
  readonly clock: Clock;
  readonly usage: PodUsageReader;
  /** Signals with thresholds. */
  readonly signals: () => readonly Signal[];
  readonly fileSystems: () => FileSystems | undefined;
}

/** A pod's usage as it was measured last. */
export interface LastUsage {
  /** Monotonic ms; its volumes may have been measured before. */
  readonly atMs: number;
  readonly usage: PodUsage;
}

/** Measurements that follow sooner are left out. */
const pauseMs = 10_000;

/**
 * What pods used in the last minutes, for the explanation of an eviction: as it was measured near a threshold, and
 * whenever others asked for it, such as a scraper of metrics. Nothing is measured for this alone while all is well. The
 * last measurement of each pod is kept for a decision that cannot measure.
 */
export class RecentUsage {
  readonly #deps: RecentUsageDependencies;
  readonly #histories = new Map<Signal, UsageHistory>();
  /** When a measurement of each kind that others asked for was last noted, monotonic ms. */
  readonly #notedMs = new Map<MeasuredKind, number>();

  readonly #last: Readonly<Record<MeasuredKind, Map<string, LastUsage>>> = { running: new Map(), storage: new Map() };

  constructor(deps: RecentUsageDependencies) {
    this.#deps = deps;
  }

  /** Notes what others have measured, until it is disposed of. */
  follow(): Disposable {
    const { clock, usage, signals } = this.#deps;
    return usage.onMeasured((kind, read) => {
      const nowMs = clock.monotonic();
      if (nowMs - (this.#notedMs.get(kind) ?? Number.NEGATIVE_INFINITY) < pauseMs) return;
      this.#notedMs.set(kind, nowMs);
      const usages = read();
      for (const about of signals()) if (this.#kindOf(about) === kind) this.#note(about, usages);
    });
  }

  /** Keeps what was measured for a decision. */
  keep(about: Signal, usages: ReadonlyMap<string, PodUsage>): void {
    const last = this.#last[this.#kindOf(about)];
    const atMs = this.#deps.clock.monotonic();
    for (const [uid, usage] of usages) last.set(uid, { atMs, usage });
    for (const [uid, kept] of last) if (atMs - kept.atMs > keptMs) last.delete(uid);
  }

  /** What a pod used when it was last measured; undefined: not in the last minutes. */
  last(about: Signal, uid: string): LastUsage | undefined {
    const kept = this.#last[this.#kindOf(about)].get(uid);
    return kept === undefined || this.#deps.clock.monotonic() - kept.atMs > keptMs ? undefined : kept;
  }

  /** Measures the usage of a signal's resource that gets short. */
  async watch(about: Signal, pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { usage } = this.#deps;
    const isStored = this.#kindOf(about) === "storage";
    this.#note(about, isStored ? await usage.readStorage(pods, "kept", signal) : await usage.readRunning(pods, signal));
  }

  /** `recent usage: 10Mi 60 s ago, 250Mi 10 s ago` */
  text(about: Signal, uid: string): string {
    const text = this.#histories.get(about)?.text(uid, this.#deps.clock.monotonic()) ?? "";
    return text === "" ? "its usage was not measured in the minutes before" : `recent usage: ${text}`;
  }

  #kindOf(about: Signal): MeasuredKind {
    return isOfDisk(about) ? "storage" : "running";
  }

  #note(about: Signal, usages: ReadonlyMap<string, PodUsage>): void {
    this.keep(about, usages);
    const parts = storageParts(about, this.#deps.fileSystems());
    const nowMs = this.#deps.clock.monotonic();
    const samples = [...usages].map(([uid, used]): [string, UsageSample | undefined] => {
      const amount = usageOf(used, about, parts);
      if (amount?.isWhole !== true) return [uid, undefined];
      return [uid, { atMs: measuredMs(used, nowMs, parts), amount: amount.value }];
    });
    const history = this.#histories.get(about) ?? new UsageHistory(resourceOf(about));
    this.#histories.set(about, history);
    history.note(new Map(samples), nowMs);
  }
}
