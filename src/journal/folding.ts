import type { JournalInput } from "./entry.ts";

interface Fold {
  readonly seq: number;
  readonly sinceMs: number;
}

const maxFoldsPerPod = 64;
const maxPods = 4096;

/**
 * Finds the entry that a new one merely repeats: same pod, container, kind, what and message, within a window of
 * time. Actions and outcomes are never folded, and nothing is folded across one of the same pod, so that pairs and the
 * order of steps stay as they were. Bounded: forgetting only means that a repetition gets an entry of its own.
 */
export class Folding {
  readonly #windowMs: number;
  readonly #pods = new Map<string, Map<string, Fold>>();

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** The sequence number of the entry that this one repeats. */
  find(input: JournalInput, nowMs: number): number | undefined {
    const folds = this.#pods.get(input.pod?.uid ?? "");
    const fold = folds?.get(keyOf(input));
    return fold !== undefined && nowMs - fold.sinceMs < this.#windowMs ? fold.seq : undefined;
  }

  /** Notes that the input became an entry of its own. */
  recorded(input: JournalInput, seq: number, nowMs: number): void {
    const uid = input.pod?.uid ?? "";
    if (input.kind === "action" || input.kind === "outcome") {
      this.#pods.delete(uid);
      return;
    }
    let folds = this.#pods.get(uid);
    if (folds === undefined) {
      if (this.#pods.size >= maxPods) this.#pods.clear();
      folds = new Map();
      this.#pods.set(uid, folds);
    }
    if (folds.size >= maxFoldsPerPod) folds.clear();
    folds.set(keyOf(input), { seq, sinceMs: nowMs });
  }
}

function keyOf({ kind, container, what, message }: JournalInput): string {
  return JSON.stringify([kind, container ?? "", what, message]);
}
