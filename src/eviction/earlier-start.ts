import type { EvictionTerms } from "./eviction-terms.ts";
import { type FileSystems, withContainerFs } from "./file-systems.ts";
import { lookAtPressure, noPressure, type Observations, type PressureState } from "./pressure.ts";
import type { Signal, Threshold } from "./thresholds.ts";

/** How an eviction differs from what earlier settings would have done. unknown: that cannot be told. */
export type EvictionChange = "changed" | "unknown";

/** What the settings of an earlier start would do, by what this one observes. */
export class EarlierStart {
  readonly #terms: EvictionTerms;
  readonly #now: EvictionTerms;
  #fileSystems: FileSystems | undefined;
  #thresholds: readonly Threshold[];
  #state: PressureState = noPressure;

  constructor(terms: EvictionTerms, now: EvictionTerms) {
    this.#terms = terms;
    this.#now = now;
    this.#thresholds = terms.thresholds;
  }

  /** Judges an observation: thresholds may have grace periods. */
  judge(observations: Observations, fileSystems: FileSystems | undefined, nowMs: number): void {
    if (this.#fileSystems !== fileSystems) {
      this.#fileSystems = fileSystems;
      this.#thresholds = withContainerFs(this.#terms.thresholds, fileSystems);
      this.#state = noPressure;
    }
    const config = { thresholds: this.#thresholds, transitionMs: 0 };
    this.#state = lookAtPressure(this.#state, this.#asThen(observations), config, nowMs).state;
  }

  /** Undefined: it would evict for the signal, too, by the last observation. */
  changeOf(signal: Signal): EvictionChange | undefined {
    const isSet = this.#terms.thresholds.some((threshold) => threshold.signal === signal);
    if (isSet && !this.#isComparable(signal)) return "unknown";
    return [...this.#state.due].some((threshold) => threshold.signal === signal) ? undefined : "changed";
  }

  get changeOfLimits(): EvictionChange | undefined {
    return this.#terms.enforcesStorageLimits ? undefined : "changed";
  }

  /** False: the earlier threshold is of another figure, which is not observed any more. */
  #isComparable(signal: Signal): boolean {
    if (signal === "memory.available") return this.#terms.countsMemAvailable === this.#now.countsMemAvailable;
    return signal !== "allocatableMemory.available" || this.#moreForPods() !== undefined;
  }

  /** How much more memory all pods together had. */
  #moreForPods(): number | undefined {
    const [then, now] = [this.#terms.reservedMemoryBytes, this.#now.reservedMemoryBytes];
    return then === undefined || now === undefined ? undefined : now - then;
  }

  #asThen(observations: Observations): Observations {
    const seen = observations.get("allocatableMemory.available");
    const more = this.#moreForPods();
    if (seen === undefined || more === undefined || more === 0) return observations;
    const shifted = (amount: bigint): bigint => (amount + BigInt(more) < 0n ? 0n : amount + BigInt(more));
    const then = { available: shifted(seen.available), capacity: shifted(seen.capacity) };
    return new Map([...observations, ["allocatableMemory.available", then]]);
  }
}
