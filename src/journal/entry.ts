import type { PodUid } from "../base/ids.ts";
import type { Json } from "../base/json.ts";
import type { CauseCode, EntryName, NameOf } from "./vocabulary.ts";
import type { JournalKind } from "./vocabulary/term.ts";

/** The pod that an entry is about. */
export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: PodUid;
}

/**
 * Why something was done: a chain from the nearest reason to the first evidence. `entry` points at the journal entry
 * that is the evidence, when there is one.
 */
export interface Cause {
  readonly code: CauseCode;
  /** One clause for people, no trailing full stop, e.g. `container web exited with code 3`. */
  readonly message: string;
  readonly entry?: number;
  readonly because?: Cause;
}

/** All that an entry says beside its name. */
export interface EntryDetails {
  /** One sentence for people. Never holds a secret. */
  readonly message: string;
  readonly pod?: PodRef;
  readonly container?: string;
  /** Required for actions. */
  readonly cause?: Cause;
  /** outcome: the sequence number of its action. */
  readonly of?: number;
  /** outcome: `done`, `failed`, or `unknown` (cancelled or timed out: the runtime may have done it). */
  readonly result?: "done" | "failed" | "unknown";
  readonly durationMs?: number;
  /** decision to wait: wall-clock milliseconds at which the wait ends, e.g. when a back-off is over. */
  readonly until?: number;
  readonly data?: { readonly [key: string]: Json };
}

/** An entry's name, with the kind that the vocabulary has for it. */
type Named = { [Kind in JournalKind]: { readonly kind: Kind; readonly what: NameOf<Kind> } }[JournalKind];

export type JournalInput = EntryDetails & Named;

export interface JournalEntry extends EntryDetails {
  readonly kind: JournalKind;
  readonly what: EntryName;
  /** Grows by one; unique over restarts of podwright on one state directory. */
  readonly seq: number;
  /** Wall clock, milliseconds since the epoch: for people, not for ordering. */
  readonly time: number;
  /** Set when further entries that said the same were folded into this one. */
  readonly repeated?: Repeated;
}

/** How often an entry was recorded, the first time included, and when last (wall-clock milliseconds). */
export interface Repeated {
  readonly count: number;
  readonly lastTime: number;
}

/** `what` of the note at each start of podwright on one journal: actions before it without an outcome have none. */
export const lifeStarted = "PodwrightStarted" satisfies EntryName;

/** `what` of the note that stands where entries were skipped for a follower that reads too slowly. */
export const journalGap = "JournalGap" satisfies EntryName;

/** The writing side of the journal: never throws and never waits, so that a full disk stops no pod. */
export interface Recorder {
  /** Returns the entry's sequence number, for causes and outcomes to point at. */
  record(entry: JournalInput): number;
}
