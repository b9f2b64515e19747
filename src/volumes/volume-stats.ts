import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { TimerQueue } from "../base/timer-queue.ts";
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

/** Spreads the first measurements of pods that start together. */
const firstWithinMs = 2_000;
/** How long measurements are shown, in periods: outdated values are worse than none. */
const shownPeriods = 5;

/** A pod's volumes are measured in one go: to wake up for each costs more than to measure it. */
interface PodEntry {
  /** By the volume's name in the pod. */
  readonly volumes: Map<string, Entry>;
  /** The next measurement; undefined: nothing is measured yet. */
  due: (Disposable & { readonly atMs: number }) | undefined;
}

interface Entry {
  volume: MeteredVolume;
  isBeingMeasured: boolean;
  /** Monotonic ms. */
  measuredAtMs: number;
  measured: MeasuredVolume | undefined;
  /** Why it cannot be measured; empty: it can. */
  problem: string;
  /** The problem that its driver reports; empty: none. */
  abnormal: string;
}

/**
 * Measures pods' external volumes every one to two periods (upstream's volume stat calculators). One that does not
 * respond delays no other.
 */
export class VolumeStats {
  readonly #deps: VolumeStatsDependencies;
  readonly #periodMs: number;
  readonly #timers: TimerQueue;
  readonly #running = new Set<Promise<void>>();
  /** While volumes are measured. */
  #signal: AbortSignal | undefined;
  readonly #pods = new Map<PodUid, PodEntry>();

  /** @param periodMs volumeStatsAggPeriod; not positive: nothing is measured */
  constructor(deps: VolumeStatsDependencies, periodMs: number) {
    this.#deps = deps;
    this.#periodMs = periodMs;
    this.#timers = new TimerQueue(deps.clock, "a volume to be measured");
  }

  /** Call after the volume was set up; may be repeated. */
  add(volume: MeteredVolume): void {
    if (this.#periodMs <= 0) return;
    const { uid } = volume.pod;
    const own: PodEntry = this.#pods.get(uid) ?? { volumes: new Map<string, Entry>(), due: undefined };
    this.#pods.set(uid, own);
    const known = own.volumes.get(volume.podVolume);
    if (known !== undefined) {
      known.volume = volume;
      return;
    }
    own.volumes.set(volume.podVolume, {
      volume,
      isBeingMeasured: false,
      measuredAtMs: Number.NEGATIVE_INFINITY,
      measured: undefined,
      problem: "",
      abnormal: "",
    });
    this.#schedule(own, 0, firstWithinMs);
  }

  /** Call before the pod's volumes are removed. */
  forget(uid: PodUid): void {
    this.#pods.get(uid)?.due?.[Symbol.dispose]();
    this.#pods.delete(uid);
    this.#deps.waits.forget(uid, ["measure"]);
  }

  /** The recent measurements of the pod's volumes. */
  of(uid: PodUid): readonly MeasuredVolume[] {
    const sinceMs = this.#deps.clock.monotonic() - shownPeriods * this.#periodMs;
    const entries = [...(this.#pods.get(uid)?.volumes.values() ?? [])];
    return entries.flatMap(({ measured = [], measuredAtMs }) => (measuredAtMs >= sinceMs ? measured : []));
  }

  /** Runs until the signal aborts. Rejects only for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const own of this.#pods.values()) this.#schedule(own, 0, firstWithinMs);
    const ended = Promise.withResolvers<void>();
    using _abort = onAbort(signal, ended.resolve);
    await ended.promise;
    this.#signal = undefined;
    this.#timers[Symbol.dispose]();
    for (const own of this.#pods.values()) own.due = undefined;
    await Promise.all(this.#running);
  }

  /** Measures the pod's volumes after a random time of at least `leastMs`, or when they are due before. */
  #schedule(own: PodEntry, leastMs: number, spreadMs: number): void {
    const signal = this.#signal;
    if (signal === undefined) return;
    const { clock, random } = this.#deps;
    const atMs = clock.monotonic() + leastMs + spreadMs * random.uniform();
    if (own.due !== undefined) {
      if (own.due.atMs <= atMs) return;
      own.due[Symbol.dispose]();
    }
    const timer = this.#timers.at(atMs, () => {
      own.due = undefined;
      for (const entry of own.volumes.values()) {
        if (entry.isBeingMeasured) continue;
        const measuring = this.#measure(entry, signal).finally(() => this.#running.delete(measuring));
        this.#running.add(measuring);
      }
      this.#schedule(own, this.#periodMs, this.#periodMs);
    });
    own.due = Object.assign(timer, { atMs });
  }

  async #measure(entry: Entry, signal: AbortSignal): Promise<void> {
    const { clock, waits, measured } = this.#deps;
    const { pod, name, driver, meter } = entry.volume;
    entry.isBeingMeasured = true;
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
      entry.isBeingMeasured = false;
      measured?.(meter.source, clock.monotonic() - beganMs);
      // The volume is gone meanwhile, so the wait that was begun has no owner.
      if (!this.#isKnown(entry)) end(true);
    }
  }

  #isKnown(entry: Entry): boolean {
    return this.#pods.get(entry.volume.pod.uid)?.volumes.get(entry.volume.podVolume) === entry;
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
