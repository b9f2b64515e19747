import { plainAmount } from "./plain-amounts.ts";
import type { StarvedResource } from "./thresholds.ts";

/** What a pod used at a moment. */
export interface UsageSample {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly amount: number;
}

/** Period that is kept. */
export const keptMs = 180_000;

/** The recent usage of a starved resource by pods. */
export class UsageHistory {
  readonly #samples = new Map<string, readonly UsageSample[]>();
  readonly #resource: StarvedResource;

  constructor(resource: StarvedResource) {
    this.#resource = resource;
  }

  /** Adds the latest usage by UID. Drops the history of other pods. */
  note(latest: ReadonlyMap<string, UsageSample | undefined>, nowMs: number): void {
    for (const uid of this.#samples.keys()) if (!latest.has(uid)) this.#samples.delete(uid);
    for (const [uid, sample] of latest) {
      if (sample === undefined) continue;
      const recent = (this.#samples.get(uid) ?? []).filter(({ atMs }) => nowMs - atMs <= keptMs);
      // What was measured once is one sample, however often it is read.
      const isNew = recent.every(({ atMs }) => atMs < sample.atMs);
      this.#samples.set(uid, isNew ? [...recent, sample] : recent);
    }
  }

  /** `10Mi 60 s ago, 250Mi 10 s ago`; empty with less than two samples. */
  text(uid: string, nowMs: number): string {
    const past = (this.#samples.get(uid) ?? []).filter(({ atMs }) => nowMs - atMs >= 1000 && nowMs - atMs <= keptMs);
    // The oldest, a middle and the newest sample show the trend.
    const chosen = new Set([past[0], past[Math.floor(past.length / 2)], past.at(-1)]);
    return [...chosen]
      .flatMap((sample) => {
        if (sample === undefined) return [];
        const seconds = Math.round((nowMs - sample.atMs) / 1000);
        return [`${plainAmount(this.#resource, BigInt(sample.amount))} ${seconds} s ago`];
      })
      .join(", ");
  }
}
