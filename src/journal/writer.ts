import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** One line to be written: the sequence number of its entry and the text with its line feed. */
export interface WrittenLine {
  readonly seq: number;
  readonly text: string;
}

/** Where a {@link JournalWriter} writes to. */
export interface LineLog {
  /** For the names of waits. */
  readonly name: string;
  /** After a rejection any part of the lines may be written; they are appended again. */
  append(lines: readonly WrittenLine[]): Promise<void>;
  /** Called before the next try after one that failed. */
  repair(): Promise<void>;
}

export interface WriterLimits {
  /** How long lines are gathered before they are written together. */
  readonly flushDelayMs: number;
  /** After a failed write. */
  readonly retryDelayMs: number;
  /** Lines kept for a disk that is slow or broken; beyond it the oldest are given up. */
  readonly maxPendingCharacters: number;
  /** How long {@link JournalWriter.close} waits for the disk. */
  readonly closeDeadlineMs: number;
}

/** How the disk copy fares, for diagnostics. */
export interface WriterHealth {
  /** Why the last write failed; undefined while writing works. */
  readonly error: string | undefined;
  /** Since when (monotonic milliseconds) writing has failed. */
  readonly failingSince: number | undefined;
  readonly pendingLines: number;
  /** Lines given up since writing last worked. */
  readonly lostLines: number;
}

/**
 * Writes lines in batches, never in the caller's way. While the disk refuses, lines wait within a bound and the oldest
 * are given up; `onRecovered` is called once when writing works again.
 */
export class JournalWriter {
  readonly #log: LineLog;
  readonly #clock: Clock;
  readonly #limits: WriterLimits;
  readonly #onRecovered: (outage: WriterHealth) => void;
  #pending: WrittenLine[] = [];
  #pendingCharacters = 0;
  #lostLines = 0;
  #error: string | undefined;
  #failingSince: number | undefined;
  #timer: Disposable | undefined;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(log: LineLog, clock: Clock, limits: WriterLimits, onRecovered: (outage: WriterHealth) => void) {
    this.#log = log;
    this.#clock = clock;
    this.#limits = limits;
    this.#onRecovered = onRecovered;
  }

  get health(): WriterHealth {
    return {
      error: this.#error,
      failingSince: this.#failingSince,
      pendingLines: this.#pending.length,
      lostLines: this.#lostLines,
    };
  }

  /** Queues a line; it is on disk soon, when the disk lets it. Does nothing once closed. */
  push(line: WrittenLine): void {
    if (this.#closed) return;
    this.#queue([line]);
    this.#schedule();
  }

  /** Writes what is queued, once, and ends. Returns within the close deadline even when the disk hangs. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    await withDeadline(
      this.#clock,
      `${this.#log.name}: last write`,
      this.#limits.closeDeadlineMs,
      undefined,
      async () => {
        await this.#running;
        await this.#write();
      },
    ).catch(() => {});
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#running !== undefined || this.#closed || this.#pending.length === 0) return;
    const [name, delayMs] =
      this.#error === undefined
        ? ([`${this.#log.name}: write`, this.#limits.flushDelayMs] as const)
        : ([`${this.#log.name}: retry after a failed write`, this.#limits.retryDelayMs] as const);
    this.#timer = this.#clock.timer(name, delayMs, () => {
      this.#timer = undefined;
      this.#running = this.#write().finally(() => {
        this.#running = undefined;
        this.#schedule();
      });
    });
  }

  async #write(): Promise<void> {
    const batch = this.#pending;
    if (batch.length === 0) return;
    this.#pending = [];
    this.#pendingCharacters = 0;
    try {
      if (this.#error !== undefined) await this.#log.repair();
      await this.#log.append(batch);
    } catch (error) {
      const newer = this.#pending;
      this.#pending = [];
      this.#pendingCharacters = 0;
      this.#queue([...batch, ...newer]);
      this.#error = errorMessage(error);
      this.#failingSince ??= this.#clock.monotonic();
      return;
    }
    if (this.#error === undefined) return;
    const outage = this.health;
    this.#error = undefined;
    this.#failingSince = undefined;
    this.#lostLines = 0;
    this.#onRecovered(outage);
  }

  #queue(lines: readonly WrittenLine[]): void {
    for (const line of lines) {
      this.#pending.push(line);
      this.#pendingCharacters += line.text.length;
    }
    if (this.#pendingCharacters <= this.#limits.maxPendingCharacters) return;
    // Half of it is dropped at a time, so that a flood during an outage does not shift the array line by line.
    let given = 0;
    while (this.#pendingCharacters > this.#limits.maxPendingCharacters / 2 && given < this.#pending.length) {
      this.#pendingCharacters -= this.#pending[given]?.text.length ?? 0;
      given++;
    }
    this.#pending = this.#pending.slice(given);
    this.#lostLines += given;
  }
}
