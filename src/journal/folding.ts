import type { JournalInput } from "./entry.ts";

interface Fold {
  readonly said: string;
  readonly seq: number;
  readonly sinceMs: number;
}

const maxSubjectsPerPod = 64;
const maxPods = 4096;

/**
 * Finds the entry that a new one merely repeats: the newest about the same subject (a container, a pod, podwright
 * itself), when it said the same within a window of time. What said something else between them is never passed over:
 * the newest entry is how things are, however often they go to and fro. Actions and outcomes are never folded, nor is
 * anything across one of the same pod. Bounded: forgetting only means that a repetition gets an entry of its own.
 */
export class Folding {
  readonly #windowMs: number;
  readonly #pods = new Map<string, Map<string, Fold>>();

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** The sequence number of the entry that this one repeats. */
  find(input: JournalInput, nowMs: number): number | undefined {
    const newest = this.#pods.get(input.pod?.uid ?? "")?.get(subjectOf(input));
    if (newest === undefined || newest.said !== saidBy(input)) return undefined;
    return nowMs - newest.sinceMs < this.#windowMs ? newest.seq : undefined;
  }

  /** Notes that the input became an entry of its own. */
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

/** The subject whose state the input reports. Without a pod, entries about manifests have only their messages. */
function subjectOf(input: JournalInput): string {
  if (input.pod === undefined && input.kind !== "note") return saidBy(input);
  return input.container ?? "";
}

function saidBy({ kind, what, message }: JournalInput): string {
  return JSON.stringify([kind, what, message]);
}
