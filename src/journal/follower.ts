import { type JournalEntry, journalGap } from "./entry.ts";

/**
 * A reader of new entries. The writer never waits for it: entries above the limit are skipped, and a {@link journalGap}
 * note replaces them.
 */
export class Follower {
  readonly #maxQueued: number;
  #queue: JournalEntry[] = [];
  #skipped = 0;
  #skippedLast: JournalEntry | undefined;
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(maxQueued: number) {
    this.#maxQueued = maxQueued;
  }

  push(entry: JournalEntry): void {
    if (this.#ended) return;
    if (this.#queue.length >= this.#maxQueued) {
      this.#skipped += this.#queue.length;
      this.#skippedLast = this.#queue.at(-1);
      this.#queue = [];
    }
    this.#queue.push(entry);
    this.#wake?.();
  }

  /** No more entries will come; queued ones can still be read. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *read(): AsyncGenerator<JournalEntry, void, undefined> {
    for (;;) {
      const gap = this.#takeGap();
      if (gap !== undefined) yield gap;
      const entry = this.#queue.shift();
      if (entry !== undefined) {
        yield entry;
      } else if (this.#ended) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
    }
  }

  #takeGap(): JournalEntry | undefined {
    const last = this.#skippedLast;
    if (last === undefined) return undefined;
    const skipped = this.#skipped;
    this.#skipped = 0;
    this.#skippedLast = undefined;
    return {
      seq: last.seq,
      time: last.time,
      kind: "note",
      what: journalGap,
      message: `${skipped} entries skipped: the reader is slower than the journal`,
      data: { skipped },
    };
  }
}
