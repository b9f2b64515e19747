import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import type { StorageWaits } from "./storage-waits.ts";
import { isSilence, type VolumeFigures, type VolumeMeter } from "./volume-meter.ts";

export interface VolumeStatsDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly waits: StorageWaits;
  /** Receives the duration of each measurement. */
  readonly measured?: ((source: string, durationMs: number) => void) | undefined;
}

export interface MeteredVolume {
  readonly pod: PodRef;
  /** Its name in the pod. */
  readonly podVolume: string;
  /** The name of its directory. */
  readonly name: string;
  /** A driver's name, or its type. */
  readonly driver: string;
  /** Undefined: its source is in the pod's spec. */
  readonly claim: { readonly namespace: string; readonly name: string } | undefined;
  readonly meter: VolumeMeter;
}

/** The last measurement of a volume. */
export interface MeasuredVolume extends Pick<MeteredVolume, "podVolume" | "claim"> {
  /** Wall clock ms. */
  readonly timeMs: number;
  readonly figures: VolumeFigures;
}

/** Spreads the first measurements of volumes that are set up together. */
const firstWithinMs = 2_000;
/** How long measurements are shown, in periods: outdated values are worse than none. */
const shownPeriods = 5;
const longestWaitMs = 3_600_000;

interface Entry {
  volume: MeteredVolume;
  dueMs: number;
  isRunning: boolean;
  /** Monotonic ms. */
  measuredAtMs: number;
  measured: MeasuredVolume | undefined;
  /** Why it cannot be measured; empty: it can. */
  problem: string;
  /** The problem that its driver reports; empty: none. */
  abnormal: string;
}

/**
 * Measures external volumes (upstream's volume stat calculators) independently: one that does not respond delays no
 * other. Every one to two periods, as upstream.
 */
export class VolumeStats {
  readonly #deps: VolumeStatsDependencies;
  readonly #periodMs: number;
  readonly #wait: WakeableWait;
  /** By pod, then by the volume's name in it. */
  readonly #pods = new Map<PodUid, Map<string, Entry>>();

  /** @param periodMs volumeStatsAggPeriod; not positive: nothing is measured */
  constructor(deps: VolumeStatsDependencies, periodMs: number) {
    this.#deps = deps;
    this.#periodMs = periodMs;
    this.#wait = new WakeableWait(deps.clock, "a volume to be measured");
  }

  /** Call after the volume was set up; may be repeated. */
  add(volume: MeteredVolume): void {
    if (this.#periodMs <= 0) return;
    const { uid } = volume.pod;
    const own = this.#pods.get(uid) ?? new Map<string, Entry>();
    this.#pods.set(uid, own);
    const known = own.get(volume.podVolume);
    if (known !== undefined) {
      known.volume = volume;
      return;
    }
    const { clock, random } = this.#deps;
    own.set(volume.podVolume, {
      volume,
      dueMs: clock.monotonic() + firstWithinMs * random.uniform(),
      isRunning: false,
      measuredAtMs: Number.NEGATIVE_INFINITY,
      measured: undefined,
      problem: "",
      abnormal: "",
    });
    this.#wait.wake();
  }

  /** Call before the pod's volumes are removed. */
  forget(uid: PodUid): void {
    this.#pods.delete(uid);
    this.#deps.waits.forget(uid, ["measure"]);
  }

  /** The recent measurements of the pod's volumes. */
  of(uid: PodUid): readonly MeasuredVolume[] {
    const sinceMs = this.#deps.clock.monotonic() - shownPeriods * this.#periodMs;
    const entries = [...(this.#pods.get(uid)?.values() ?? [])];
    return entries.flatMap(({ measured = [], measuredAtMs }) => (measuredAtMs >= sinceMs ? measured : []));
  }

  /** Runs until the signal aborts. Rejects only for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    const running = new Set<Promise<void>>();
    while (!signal.aborted) {
      const nowMs = this.#deps.clock.monotonic();
      let delayMs = longestWaitMs;
      for (const entry of this.#entries()) {
        if (entry.isRunning) continue;
        if (entry.dueMs > nowMs) {
          delayMs = Math.min(delayMs, entry.dueMs - nowMs);
          continue;
        }
        const measuring = this.#measure(entry, signal).finally(() => running.delete(measuring));
        running.add(measuring);
      }
      await this.#wait.for(delayMs, signal);
    }
    await Promise.all(running);
  }

  *#entries(): Iterable<Entry> {
    for (const own of this.#pods.values()) yield* own.values();
  }

  async #measure(entry: Entry, signal: AbortSignal): Promise<void> {
    const { clock, random, waits, measured } = this.#deps;
    const { pod, name, driver, meter } = entry.volume;
    entry.isRunning = true;
    const end = waits.begin({ pod, volume: name, driver, operation: "measure" });
    const beganMs = clock.monotonic();
    try {
      const figures = await meter.read(signal);
      end(true);
      this.#answered(entry, figures);
    } catch (error) {
      end(!isSilence(error));
      if (!signal.aborted) this.#failed(entry, errorMessage(error));
    } finally {
      // The volume is gone meanwhile, so the wait that was begun has no owner.
      if (!this.#isKnown(entry)) end(true);
      measured?.(meter.source, clock.monotonic() - beganMs);
      entry.isRunning = false;
      entry.dueMs = clock.monotonic() + this.#periodMs * (1 + random.uniform());
      this.#wait.wake();
    }
  }

  #isKnown(entry: Entry): boolean {
    return this.#pods.get(entry.volume.pod.uid)?.get(entry.volume.podVolume) === entry;
  }

  #answered(entry: Entry, figures: VolumeFigures | undefined): void {
    entry.problem = "";
    if (figures === undefined || !this.#isKnown(entry)) return;
    const { clock } = this.#deps;
    const { podVolume, claim } = entry.volume;
    entry.measuredAtMs = clock.monotonic();
    entry.measured = { podVolume, claim, timeMs: clock.now(), figures };
    this.#judge(entry, figures);
  }

  /** As upstream, each measurement sends the Event. */
  #judge(entry: Entry, { condition }: VolumeFigures): void {
    const { journal } = this.#deps;
    const { pod, podVolume } = entry.volume;
    const before = entry.abnormal;
    entry.abnormal = condition?.abnormal === true ? `Volume ${podVolume}: ${condition.message}` : "";
    if (before !== "" && before !== entry.abnormal) {
      journal.record({ kind: "observation", what: "VolumeConditionOver", message: before, pod });
    }
    if (entry.abnormal === "") return;
    journal.record({ kind: "observation", what: "VolumeConditionAbnormal", message: entry.abnormal, pod });
  }

  /** Its last values are shown for a while longer. */
  #failed(entry: Entry, problem: string): void {
    if (problem === entry.problem || !this.#isKnown(entry)) return;
    entry.problem = problem;
    const { pod, name, driver } = entry.volume;
    this.#deps.log.warn("cannot measure a volume", { ...pod, volume: name, driver, error: problem });
  }
}
