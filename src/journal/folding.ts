import type { JournalInput } from "./entry.ts";

interface Fold {
  readonly said: string;
  readonly seq: number;
  readonly sinceMs: number;
}

const maxSubjectsPerPod = 64;
const maxPods = 4096;

/**
 * Finds the entry that a new one repeats: the newest about the same subject (a container, a pod, podwright itself), if
 * it is equal and recent. Older entries do not count: the newest entry is the current state, even if states alternate.
 * Actions and outcomes are never folded, nor is anything across one of the same pod. Bounded: a forgotten entry only
 * means that its repetition is recorded separately.
 */
export class Folding {
  readonly #windowMs: number;
  readonly #pods = new Map<string, Map<string, Fold>>();

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** The sequence number of the repeated entry, if any. */
  find(input: JournalInput, nowMs: number): number | undefined {
    const newest = this.#pods.get(input.pod?.uid ?? "")?.get(subjectOf(input));
    if (newest === undefined || newest.said !== saidBy(input)) return undefined;
    return nowMs - newest.sinceMs < this.#windowMs ? newest.seq : undefined;
  }

  /** Registers the input as a separate entry. */
  recorded(input: JournalInput, seq: number, nowMs: number): void {
    const uid = input.pod?.uid ?? "";
    if (input.kind === "action" || input.kind === "outcome") {
      this.#pods.delete(uid);
      return;
    }
    let subjects = this.#pods.get(uid);
    if (subjects === undefined) {
      if (this.#pods.size >= maxPods) this.#pods.clear();
      subjects = new Map();
      this.#pods.set(uid, subjects);
    }
    if (subjects.size >= maxSubjectsPerPod) subjects.clear();
    subjects.set(subjectOf(input), { said: saidBy(input), seq, sinceMs: nowMs });
  }
}

/** The subject of the input. Entries about manifests have no pod; their subject is the message. */
function subjectOf(input: JournalInput): string {
  if (input.pod === undefined && input.kind !== "note") return saidBy(input);
  return input.container ?? "";
}

function saidBy({ kind, what, message }: JournalInput): string {
  return JSON.stringify([kind, what, message]);
}
