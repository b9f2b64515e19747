import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** A line to write: its entry's sequence number, and the text with its newline. */
export interface WrittenLine {
  readonly seq: number;
  readonly text: string;
}

/** The destination of a {@link JournalWriter}. */
export interface LineLog {
  /** For the names of waits. */
  readonly name: string;
  /** After a rejection, some lines may have been written; they are appended again. */
  append(lines: readonly WrittenLine[]): Promise<void>;
  /** Called before the retry of a failed write. */
  repair(): Promise<void>;
}

export interface WriterLimits {
  /** How long lines are collected before a write. */
  readonly flushDelayMs: number;
  /** After a failed write. */
  readonly retryDelayMs: number;
  /** Limit of lines that wait for a slow or broken disk; above it the oldest are dropped. */
  readonly maxPendingCharacters: number;
  /** How long {@link JournalWriter.close} waits for the disk. */
  readonly closeDeadlineMs: number;
}

/** The state of the writes, for diagnostics. */
export interface WriterHealth {
  /** The error of the last write; undefined while writes succeed. */
  readonly error: string | undefined;
  /** Monotonic milliseconds since when writes have failed. */
  readonly failingSince: number | undefined;
  readonly pendingLines: number;
  /** Lines dropped since writes last succeeded. */
  readonly lostLines: number;
}

/**
 * Writes lines in batches, without blocking the caller. While writes fail, lines wait up to a limit and the oldest are
 * dropped; `onRecovered` is called once when writes succeed again.
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

  /** Queues a line to be written soon. No effect once closed. */
  push(line: WrittenLine): void {
    if (this.#closed) return;
    this.#queue([line]);
    this.#schedule();
  }

  /** Writes the queue once, and ends. Returns within the close deadline even when the disk hangs. */
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
    // Drops half of the queue at a time: during a flood, shifting the array for each line would be slow.
    let given = 0;
    while (this.#pendingCharacters > this.#limits.maxPendingCharacters / 2 && given < this.#pending.length) {
      this.#pendingCharacters -= this.#pending[given]?.text.length ?? 0;
      given++;
    }
    this.#pending = this.#pending.slice(given);
    this.#lostLines += given;
  }
}
