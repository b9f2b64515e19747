import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { settlesBefore } from "../base/settling.ts";
import type { PodUid } from "../base/ids.ts";
import { TransientList } from "../base/transient-list.ts";
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

/** Volumes of pods that start together are measured for the first time together. */
const firstWithinMs = 2_000;
/** How long measurements are shown, in periods: outdated values are worse than none. */
const shownPeriods = 5;
/**
 * Volumes of a driver that are measured at the same time, in few reads and writes of its socket; the next come after
 * `patienceMs` in any case, as for one that hangs.
 */
const atOnce = 20;
const patienceMs = 1_000;

interface Entry {
  volume: MeteredVolume;
  isBeingMeasured: boolean;
  /** It was tried. */
  isTried: boolean;
  /** Monotonic ms. */
  measuredAtMs: number;
  measured: MeasuredVolume | undefined;
  /** Why it cannot be measured; empty: it can. */
  problem: string;
  /** The problem that its driver reports; empty: none. */
  abnormal: string;
}

/**
 * Measures pods' external volumes every one to two periods (upstream's volume stat calculators). All of the node's are
 * measured in one go: to wake up for each pod costs more than to measure its volumes. One that does not respond delays
 * no other for long.
 */
export class VolumeStats {
  readonly #deps: VolumeStatsDependencies;
  readonly #periodMs: number;
  readonly #running = new TransientList<Promise<void>>();
  /** While volumes are measured. */
  #signal: AbortSignal | undefined;
  /** By the volume's name in the pod. */
  readonly #pods = new Map<PodUid, Map<string, Entry>>();
  /** The next measurement of those that were never measured, and of all. */
  #first: Disposable | undefined;
  #next: Disposable | undefined;

  /** @param periodMs volumeStatsAggPeriod; not positive: nothing is measured */
  constructor(deps: VolumeStatsDependencies, periodMs: number) {
    this.#deps = deps;
    this.#periodMs = periodMs;
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
    own.set(volume.podVolume, {
      volume,
      isBeingMeasured: false,
      isTried: false,
      measuredAtMs: Number.NEGATIVE_INFINITY,
      measured: undefined,
      problem: "",
      abnormal: "",
    });
    this.#schedule();
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
    this.#signal = signal;
    this.#schedule();
    const ended = Promise.withResolvers<void>();
    using _abort = onAbort(signal, ended.resolve);
    await ended.promise;
    this.#signal = undefined;
    this.#first?.[Symbol.dispose]();
    this.#next?.[Symbol.dispose]();
    await Promise.all(this.#running);
  }

  #schedule(): void {
    if (this.#signal === undefined || this.#pods.size === 0) return;
    const { clock, random } = this.#deps;
    this.#first ??= clock.timer("new volumes to be measured", firstWithinMs * random.uniform(), () => {
      this.#first = undefined;
      this.#measureAll(({ isTried }) => !isTried);
    });
    this.#scheduleNext();
  }

  #scheduleNext(): void {
    const { clock, random } = this.#deps;
    this.#next ??= clock.timer("volumes to be measured", this.#periodMs * (1 + random.uniform()), () => {
      this.#next = undefined;
      if (this.#pods.size === 0) return;
      this.#scheduleNext();
      this.#measureAll(() => true);
    });
  }

  #measureAll(isDue: (entry: Entry) => boolean): void {
    const signal = this.#signal;
    if (signal === undefined) return;
    const due = [...this.#pods.values()].flatMap((own) => [...own.values()]).filter(isDue);
    for (const ofDriver of Map.groupBy(due, ({ volume }) => volume.driver).values()) {
      void this.#keep(this.#inTurn(ofDriver, signal));
    }
  }

  /** Some at a time, and the next while these take long. */
  async #inTurn(entries: readonly Entry[], signal: AbortSignal): Promise<void> {
    for (let begun = 0; begun < entries.length && !signal.aborted; begun += atOnce) {
      const some = entries
        .slice(begun, begun + atOnce)
        .filter((entry) => !entry.isBeingMeasured && this.#isKnown(entry));
      const measured = Promise.all(some.map((entry) => this.#keep(this.#measure(entry, signal))));
      const isOver = await settlesBefore(measured, (late) => {
        return this.#deps.clock.timer("volumes that are being measured", patienceMs, late);
      });
      // A defect must not go unseen.
      if (isOver) await measured;
    }
  }

  /** Until it has ended. */
  async #keep(work: Promise<void>): Promise<void> {
    using _running = this.#running.add(work);
    await work;
  }

  async #measure(entry: Entry, signal: AbortSignal): Promise<void> {
    const { clock, waits, measured } = this.#deps;
    const { pod, name, driver, meter } = entry.volume;
    entry.isBeingMeasured = true;
    entry.isTried = true;
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
