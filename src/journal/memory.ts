import { invariant } from "../base/invariant.ts";
import type { JournalEntry, PodRef } from "./entry.ts";
import type { JournalKind } from "./vocabulary/term.ts";

/** Which entries to read. All given conditions must hold; an empty filter matches every entry. */
export interface EntryFilter {
  /** Given fields must be equal: `{ uid }` for one incarnation, `{ namespace, name }` for all of a name. */
  readonly pod?: Partial<PodRef>;
  /** With `pod`: also entries about the node itself (podwright started, the runtime was lost …). */
  readonly withNode?: boolean;
  readonly container?: string;
  readonly kinds?: readonly JournalKind[];
  /** Minimum sequence number. */
  readonly sinceSeq?: number;
  /** Maximum number of entries, the newest ones. */
  readonly limit?: number;
}

/** Whether the entry matches the filter, except for `limit`. */
export function matches(filter: EntryFilter, entry: JournalEntry): boolean {
  if (filter.sinceSeq !== undefined && entry.seq < filter.sinceSeq) return false;
  if (filter.kinds !== undefined && !filter.kinds.includes(entry.kind)) return false;
  if (filter.withNode === true && entry.pod === undefined) return true;
  if (filter.container !== undefined && entry.container !== filter.container) return false;
  const { pod } = filter;
  if (pod === undefined) return true;
  return (
    entry.pod !== undefined &&
    (pod.uid === undefined || pod.uid === entry.pod.uid) &&
    (pod.namespace === undefined || pod.namespace === entry.pod.namespace) &&
    (pod.name === undefined || pod.name === entry.pod.name)
  );
}

export interface MemoryLimits {
  readonly maxEntries: number;
  /** Bytes of the entries' JSON lines, as a measure of their size. */
  readonly maxBytes: number;
  /** So that a noisy pod does not displace the entries of others. */
  readonly maxEntriesPerPod: number;
}

interface Stored {
  entry: JournalEntry;
  bytes: number;
}

/**
 * The newest entries, by sequence number and by pod. Bounded: a pod above its share loses its own oldest entry,
 * otherwise the oldest of all is dropped.
 */
export class JournalMemory {
  readonly #limits: MemoryLimits;
  /** In ascending order of sequence number, which is the insertion order. */
  readonly #entries = new Map<number, Stored>();
  readonly #byPod = new Map<string, Set<number>>();
  #bytes = 0;
  #lastSeq = 0;

  constructor(limits: MemoryLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Adds an entry with a new highest sequence number. */
  add(entry: JournalEntry, bytes: number): void {
    // Readers and files rely on the order.
    invariant("entry numbers increase", entry.seq > this.#lastSeq, () => `${entry.seq} after ${this.#lastSeq}`);
    this.#lastSeq = entry.seq;
    this.#entries.set(entry.seq, { entry, bytes });
    this.#bytes += bytes;
    const uid = entry.pod?.uid ?? "";
    const seqs = this.#byPod.get(uid) ?? new Set();
    this.#byPod.set(uid, seqs.add(entry.seq));
    if (seqs.size > this.#limits.maxEntriesPerPod) this.#dropFirst(seqs);
    while (this.#entries.size > this.#limits.maxEntries || (this.#bytes > this.#limits.maxBytes && this.size > 1)) {
      this.#dropFirst(this.#entries);
    }
  }

  get(seq: number): JournalEntry | undefined {
    return this.#entries.get(seq)?.entry;
  }

  /** Replaces a stored entry by its newer version. */
  replace(entry: JournalEntry, bytes: number): void {
    const stored = this.#entries.get(entry.seq);
    if (stored === undefined) return;
    this.#bytes += bytes - stored.bytes;
    stored.entry = entry;
    stored.bytes = bytes;
  }

  /** The matching entries, by ascending sequence number. */
  select(filter: EntryFilter): JournalEntry[] {
    const found: JournalEntry[] = [];
    for (const { entry } of this.#candidates(filter)) {
      if (matches(filter, entry)) found.push(entry);
    }
    return filter.limit === undefined || filter.limit >= found.length
      ? found
      : found.slice(found.length - filter.limit);
  }

  /** All pods with entries, oldest first. */
  pods(): PodRef[] {
    const pods: PodRef[] = [];
    for (const seqs of this.#byPod.values()) {
      for (const seq of seqs) {
        const pod = this.get(seq)?.pod;
        if (pod !== undefined) pods.push(pod);
        break;
      }
    }
    return pods;
  }

  #candidates(filter: EntryFilter): Iterable<Stored> {
    const uid = filter.pod?.uid;
    if (uid === undefined || filter.withNode === true) return this.#entries.values();
    const seqs = this.#byPod.get(uid) ?? [];
    return Iterator.from(seqs).flatMap((seq) => {
      const stored = this.#entries.get(seq);
      return stored === undefined ? [] : [stored];
    });
  }

  #dropFirst(from: { keys(): Iterator<number, undefined> }): void {
    const { value: seq } = from.keys().next();
    const stored = seq === undefined ? undefined : this.#entries.get(seq);
    if (seq === undefined || stored === undefined) return;
    this.#entries.delete(seq);
    this.#bytes -= stored.bytes;
    // Each removal subtracts what its entry added.
    invariant("the journal's size is not negative", this.#bytes >= 0, () => `${this.#bytes} bytes`);
    const uid = stored.entry.pod?.uid ?? "";
    const seqs = this.#byPod.get(uid);
    seqs?.delete(seq);
    if (seqs?.size === 0) this.#byPod.delete(uid);
  }
}
