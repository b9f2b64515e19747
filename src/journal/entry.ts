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
 * Why something was done: a chain from the nearest reason to the first evidence. `entry` is the number of the evidence
 * entry, if there is one.
 */
export interface Cause {
  readonly code: CauseCode;
  /** One clause for people, no trailing full stop, e.g. `container web exited with code 3`. */
  readonly message: string;
  readonly entry?: number;
  readonly because?: Cause;
}

/** The fields of an entry besides its name. */
export interface EntryDetails {
  /** One sentence for people. Never holds a secret. */
  readonly message: string;
  readonly pod?: PodRef;
  readonly container?: string;
  /** Required for actions. */
  readonly cause?: Cause;
  /** outcome: the sequence number of its action. */
  readonly of?: number;
  /** outcome: `done`, `failed`, or `unknown` (canceled or timed out: the runtime may have done it). */
  readonly result?: "done" | "failed" | "unknown";
  readonly durationMs?: number;
  /** decision to wait: wall-clock milliseconds at which the wait ends, e.g. the end of a back-off. */
  readonly until?: number;
  readonly data?: { readonly [key: string]: Json };
}

/** An entry's name, with its kind in the vocabulary. */
type Named = { [Kind in JournalKind]: { readonly kind: Kind; readonly what: NameOf<Kind> } }[JournalKind];

export type JournalInput = EntryDetails & Named;

export interface JournalEntry extends EntryDetails {
  readonly kind: JournalKind;
  readonly what: EntryName;
  /** Grows by one; unique across restarts of podwright with one state directory. */
  readonly seq: number;
  /** Wall clock, milliseconds since the epoch: for people, not for ordering. */
  readonly time: number;
  /** Set when equal entries were folded into this one. */
  readonly repeated?: Repeated;
}

/** How often an entry was recorded, including the first time, and when last (wall-clock milliseconds). */
export interface Repeated {
  readonly count: number;
  readonly lastTime: number;
}

/** `what` of the note at each start of podwright: earlier actions without an outcome will never have one. */
export const lifeStarted = "PodwrightStarted" satisfies EntryName;

/** `what` of the note that replaces entries skipped for a slow follower. */
export const journalGap = "JournalGap" satisfies EntryName;

/** The writing side of the journal: never throws and never waits, so that a full disk blocks no pod. */
export interface Recorder {
  /** Returns the entry's sequence number, for references in causes and outcomes. */
  record(entry: JournalInput): number;
}
