import { invariant } from "../base/invariant.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { encodeEntry } from "./codec.ts";
import { type JournalEntry, type JournalInput, lifeStarted, type PodRef, type Recorder } from "./entry.ts";
import { Folding } from "./folding.ts";
import { Follower } from "./follower.ts";
import { type EntryFilter, JournalMemory, matches, type MemoryLimits } from "./memory.ts";
import { type JournalFiles, SegmentLog, type SegmentLimits } from "./segments.ts";
import { JournalWriter, type WriterHealth, type WriterLimits } from "./writer.ts";

export interface JournalLimits extends MemoryLimits, SegmentLimits, WriterLimits {
  /** Within this time, a repeated entry only increases the count of the first. */
  readonly foldWindowMs: number;
  /** Maximum number of unread entries of a follower. */
  readonly maxFollowerEntries: number;
}

/** At most 16 MiB of entries in memory and 32 MiB on disk. */
export const defaultJournalLimits: JournalLimits = {
  maxEntries: 20_000,
  maxBytes: 16 * 1024 * 1024,
  maxEntriesPerPod: 2_000,
  maxSegmentBytes: 4 * 1024 * 1024,
  maxSegments: 8,
  flushDelayMs: 50,
  retryDelayMs: 5_000,
  maxPendingCharacters: 4 * 1024 * 1024,
  closeDeadlineMs: 5_000,
  foldWindowMs: 60_000,
  maxFollowerEntries: 1_000,
};

export interface JournalOptions {
  readonly files: JournalFiles;
  readonly clock: Clock;
  /** Absolute path of the journal's own directory; created if missing. */
  readonly directory: string;
  readonly limits?: Partial<JournalLimits>;
  /** Called with each recorded entry, repetitions included. Must return immediately and not throw. */
  readonly observe?: ((input: JournalInput) => void) | undefined;
}

/**
 * The record of inputs, decisions, actions and their causes: in memory for readers, on disk for later runs. It never
 * throws and never waits, and a failing disk blocks nothing.
 */
export class Journal implements Recorder {
  readonly #clock: Clock;
  readonly #limits: JournalLimits;
  readonly #memory: JournalMemory;
  readonly #folding: Folding;
  readonly #writer: JournalWriter | undefined;
  readonly #followers = new Set<{ readonly filter: EntryFilter; readonly follower: Follower }>();
  /** Entries whose count has grown since they were last written and reported. */
  readonly #grown = new Set<number>();
  #growthTimer: Disposable | undefined;
  readonly #observe: JournalOptions["observe"];
  #nextSeq: number;
  #startSeq = 0;
  #closed = false;

  /**
   * Reads the entries of earlier runs and begins this one with a {@link lifeStarted} note. Never rejects: with an
   * unusable directory the journal is in memory only, and a note says so.
   */
  static async open(options: JournalOptions): Promise<Journal> {
    const limits = { ...defaultJournalLimits, ...options.limits };
    const log = new SegmentLog(options.files, options.directory, limits);
    let entries: readonly JournalEntry[] = [];
    let nextSeq = 1;
    let problems: readonly string[] = [];
    let usable = true;
    try {
      ({ entries, nextSeq, problems } = await log.open(limits.maxEntries));
    } catch (error) {
      usable = false;
      problems = [`in memory only, cannot use ${options.directory}: ${errorMessage(error)}`];
    }
    const journal = new Journal(options, limits, usable ? log : undefined, entries, nextSeq);
    journal.#startSeq = journal.record({ kind: "note", what: lifeStarted, message: startMessage(entries) });
    for (const problem of problems) {
      journal.record({ kind: "note", what: "JournalProblem", message: `the journal is incomplete: ${problem}` });
    }
    return journal;
  }

  private constructor(
    { clock, observe }: JournalOptions,
    limits: JournalLimits,
    log: SegmentLog | undefined,
    entries: readonly JournalEntry[],
    nextSeq: number,
  ) {
    this.#clock = clock;
    this.#observe = observe;
    this.#limits = limits;
    this.#memory = new JournalMemory(limits);
    this.#folding = new Folding(limits.foldWindowMs);
    this.#nextSeq = nextSeq;
    for (const entry of entries) this.#memory.add(entry, encodeEntry(entry).line.length);
    this.#writer = log && new JournalWriter(log, clock, limits, (outage) => this.#noteRecovery(outage));
  }

  /**
   * Records an entry and returns its sequence number: a new one, or that of an equal recent entry ({@link Folding}). An
   * action without a cause is a defect; it is recorded with the cause `MissingCause` and a note that tests check for.
   */
  record(input: JournalInput): number {
    if (input.kind === "action" && input.cause === undefined) return this.#recordWithoutCause(input);
    this.#observe?.(input);
    const nowMs = this.#clock.monotonic();
    const folded = this.#fold(input, nowMs);
    if (folded !== undefined) return folded;
    const seq = this.#nextSeq++;
    const { of = 0 } = input;
    // Callers refer to this number in the outcome.
    invariant("an outcome follows its action", of < seq, () => `${input.what} ${seq} is of ${of}`);
    const { entry, line } = encodeEntry({ ...input, seq, time: this.#clock.now() });
    this.#memory.add(entry, line.length);
    this.#folding.recorded(input, seq, nowMs);
    this.#publish(entry, line);
    return seq;
  }

  /** Entries in memory that match the filter, by ascending sequence number. */
  entries(filter: EntryFilter = {}): JournalEntry[] {
    return this.#memory.select(filter);
  }

  /** The number of this run's {@link lifeStarted} note. */
  get startSeq(): number {
    return this.#startSeq;
  }

  /** All pods (by UID) with entries in memory, oldest first. */
  pods(): PodRef[] {
    return this.#memory.pods();
  }

  /**
   * New entries, preceded by existing ones from `sinceSeq` on. A folded entry is repeated when its count has grown.
   * Ends when `signal` aborts or the journal is closed. A reader slower than the journal gets a `JournalGap` note for
   * what it missed.
   */
  follow(filter: EntryFilter, signal: AbortSignal): AsyncIterable<JournalEntry> {
    const backlog = filter.sinceSeq === undefined ? [] : this.#memory.select(filter);
    const follower = new Follower(this.#limits.maxFollowerEntries);
    const member = { filter, follower };
    const end = (): void => {
      this.#followers.delete(member);
      signal.removeEventListener("abort", end);
      follower.end();
    };
    if (signal.aborted || this.#closed) follower.end();
    else {
      this.#followers.add(member);
      signal.addEventListener("abort", end, { once: true });
    }
    return (async function* () {
      try {
        for (const entry of backlog) {
          if (signal.aborted) return;
          yield entry;
        }
        yield* follower.read();
      } finally {
        end();
      }
    })();
  }

  /** The sequence number of the latest entry; 0: there has been none. */
  get lastSeq(): number {
    return this.#nextSeq - 1;
  }

  /** The state of the disk copy; undefined when the journal is in memory only. */
  get diskHealth(): WriterHealth | undefined {
    return this.#writer?.health;
  }

  /** Writes queued entries and ends the followers. Entries recorded later stay in memory. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#publishGrown();
    this.#closed = true;
    for (const { follower } of this.#followers) follower.end();
    this.#followers.clear();
    await this.#writer?.close();
  }

  #recordWithoutCause(input: JournalInput): number {
    const seq = this.record({ ...input, cause: { code: "MissingCause", message: "no cause given" } });
    this.record({
      kind: "note",
      what: "MissingCause",
      message: `the action ${input.what} was requested without a cause: please report this podwright bug`,
      ...(input.pod !== undefined && { pod: input.pod }),
      data: { action: seq },
    });
    return seq;
  }

  #fold(input: JournalInput, nowMs: number): number | undefined {
    if (input.kind === "action" || input.kind === "outcome") return undefined;
    const seq = this.#folding.find(input, nowMs);
    const held = seq === undefined ? undefined : this.#memory.get(seq);
    if (held === undefined) return undefined;
    const repeated = { count: (held.repeated?.count ?? 1) + 1, lastTime: this.#clock.now() };
    const { entry, line } = encodeEntry({ ...input, seq: held.seq, time: held.time, repeated });
    this.#memory.replace(entry, line.length);
    this.#grown.add(held.seq);
    if (!this.#closed) {
      this.#growthTimer ??= this.#clock.timer("journal: counts of folded entries", this.#limits.foldWindowMs, () =>
        this.#publishGrown(),
      );
    }
    return held.seq;
  }

  #publishGrown(): void {
    this.#growthTimer?.[Symbol.dispose]();
    this.#growthTimer = undefined;
    for (const seq of this.#grown) {
      const entry = this.#memory.get(seq);
      if (entry !== undefined) this.#publish(entry, encodeEntry(entry).line);
    }
    this.#grown.clear();
  }

  #publish(entry: JournalEntry, line: string): void {
    this.#writer?.push({ seq: entry.seq, text: line });
    for (const { filter, follower } of this.#followers) {
      if (matches(filter, entry)) follower.push(entry);
    }
  }

  #noteRecovery({ error, failingSince, lostLines }: WriterHealth): void {
    const seconds = Math.round((this.#clock.monotonic() - (failingSince ?? 0)) / 1000);
    const lost = lostLines === 0 ? "nothing was lost" : `up to ${lostLines} entries are missing on disk`;
    this.record({
      kind: "note",
      what: "JournalWritable",
      message: `the journal is writable again after ${seconds} s, ${lost} (the failure was: ${error ?? "?"})`,
      data: { lostLines },
    });
  }
}

function startMessage(entries: readonly JournalEntry[]): string {
  const last = entries.at(-1);
  return last === undefined
    ? "podwright started with an empty journal"
    : `podwright started; the last entry before is ${last.seq}`;
}
