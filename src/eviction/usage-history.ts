import { amountText } from "./pressure.ts";
import { resourceOf, type Signal } from "./thresholds.ts";

interface Sample {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly amount: number;
}

/** So far back it goes. */
const keptMs = 180_000;

/** What pods used of a resource that is getting short, over the last minutes. */
export class UsageHistory {
  readonly #samples = new Map<string, readonly Sample[]>();
  #about: Signal | undefined;

  /** Takes what pods use now, by UID. Of pods that are not among them, and of another signal, it knows nothing any more. */
  note(about: Signal, amounts: ReadonlyMap<string, number | undefined>, nowMs: number): void {
    if (about !== this.#about) this.#samples.clear();
    this.#about = about;
    for (const uid of this.#samples.keys()) if (!amounts.has(uid)) this.#samples.delete(uid);
    for (const [uid, amount] of amounts) {
      if (amount === undefined) continue;
      const recent = (this.#samples.get(uid) ?? []).filter(({ atMs }) => nowMs - atMs <= keptMs);
      this.#samples.set(uid, [...recent, { atMs: nowMs, amount }]);
    }
  }

  /** `10Mi 60 s ago, 250Mi 10 s ago`; empty where there is nothing to compare with. */
  text(uid: string, about: Signal, nowMs: number): string {
    const samples = about === this.#about ? (this.#samples.get(uid) ?? []) : [];
    const past = samples.filter(({ atMs }) => nowMs - atMs >= 1000);
    // The oldest, one of the middle, and the newest tell how it came.
    const chosen = new Set([past[0], past[Math.floor(past.length / 2)], past.at(-1)]);
    return [...chosen]
      .flatMap((sample) => {
        if (sample === undefined) return [];
        const seconds = Math.round((nowMs - sample.atMs) / 1000);
        return [`${amountText(resourceOf(about), BigInt(sample.amount))} ${seconds} s ago`];
      })
      .join(", ");
  }
}
