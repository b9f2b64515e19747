import { type Cause, type JournalEntry, lifeStarted, type PodRef, type Repeated } from "./entry.ts";
import type { CauseCode, EntryName } from "./vocabulary.ts";
import type { JournalKind } from "./vocabulary/term.ts";

/** One reason in a chain, nearest first, with its evidence entry if available. */
export interface CauseLink {
  readonly code: CauseCode;
  readonly message: string;
  readonly evidence?: { readonly seq: number; readonly time: number; readonly message: string };
}

/**
 * How an action ended. running: not yet. interrupted: podwright stopped first, so the outcome is unknown. Other values
 * are the outcome's own.
 */
export interface Ending {
  readonly result: "done" | "failed" | "unknown" | "running" | "interrupted";
  /** The outcome's sequence number. */
  readonly seq?: number;
  readonly time?: number;
  readonly message?: string;
  readonly durationMs?: number;
}

/** An entry, or an action together with its outcome. Times are wall-clock milliseconds. */
export interface Step {
  readonly seq: number;
  readonly time: number;
  readonly kind: JournalKind;
  readonly what: EntryName;
  readonly message: string;
  readonly pod?: PodRef;
  readonly container?: string;
  readonly ending?: Ending;
  /** For a wait: when it ends. */
  readonly until?: number;
  readonly repeated?: Repeated;
  readonly causes: readonly CauseLink[];
}

const maxCauses = 16;

/**
 * The steps in the entries (by ascending sequence number), actions joined with their outcomes, in order of their start.
 */
export function stepsOf(entries: readonly JournalEntry[]): Step[] {
  const bySeq = new Map(entries.map((entry) => [entry.seq, entry]));
  const outcomes = new Map<number, JournalEntry>();
  for (const entry of entries) {
    if (entry.kind === "outcome" && entry.of !== undefined && bySeq.get(entry.of)?.kind === "action") {
      outcomes.set(entry.of, entry);
    }
  }
  const lastLife = lastStartSeq(entries);
  return entries
    .filter((entry) => entry.kind !== "outcome" || outcomes.get(entry.of ?? 0) !== entry)
    .map((entry) => stepOf(entry, endingOf(entry, outcomes.get(entry.seq), lastLife), bySeq));
}

/** The number of podwright's last start, with which what was open before has ended without an entry; 0: not among them. */
export function lastStartSeq(entries: readonly JournalEntry[]): number {
  return entries.findLast((entry) => entry.what === lifeStarted)?.seq ?? 0;
}

/** The step's position in the order of events: that of its outcome, if any. */
export function endSeq(step: Step): number {
  return step.ending?.seq ?? step.seq;
}

function stepOf(entry: JournalEntry, ending: Ending | undefined, bySeq: ReadonlyMap<number, JournalEntry>): Step {
  const { seq, time, kind, what, message, pod, container, until, repeated } = entry;
  return {
    seq,
    time,
    kind,
    what,
    message,
    ...(pod !== undefined && { pod }),
    ...(container !== undefined && { container }),
    ...(ending !== undefined && { ending }),
    ...(until !== undefined && { until }),
    ...(repeated !== undefined && { repeated }),
    causes: causesOf(entry, bySeq),
  };
}

function endingOf(entry: JournalEntry, outcome: JournalEntry | undefined, lastLife: number): Ending | undefined {
  if (entry.kind === "outcome") {
    return {
      result: entry.result ?? "unknown",
      seq: entry.seq,
      time: entry.time,
      ...(entry.durationMs !== undefined && { durationMs: entry.durationMs }),
    };
  }
  if (entry.kind !== "action") return undefined;
  if (outcome === undefined) return { result: entry.seq < lastLife ? "interrupted" : "running" };
  return {
    result: outcome.result ?? "unknown",
    seq: outcome.seq,
    time: outcome.time,
    message: outcome.message,
    durationMs: outcome.durationMs ?? outcome.time - entry.time,
  };
}

/** The entry's chain of causes, continued with the causes of its last evidence entry. */
function causesOf(entry: JournalEntry, bySeq: ReadonlyMap<number, JournalEntry>): CauseLink[] {
  const links: CauseLink[] = [];
  const visited = new Set([entry.seq]);
  let cause = entry.cause;
  while (cause !== undefined && links.length < maxCauses) {
    const evidence = cause.entry === undefined ? undefined : bySeq.get(cause.entry);
    links.push(linkOf(cause, evidence));
    cause = cause.because ?? causeBehind(evidence, visited, bySeq);
  }
  return links;
}

export function linkOf({ code, message }: Cause, evidence: JournalEntry | undefined): CauseLink {
  if (evidence === undefined) return { code, message };
  return { code, message, evidence: { seq: evidence.seq, time: evidence.time, message: evidence.message } };
}

function causeBehind(
  evidence: JournalEntry | undefined,
  visited: Set<number>,
  bySeq: ReadonlyMap<number, JournalEntry>,
): Cause | undefined {
  if (evidence === undefined || visited.has(evidence.seq)) return undefined;
  visited.add(evidence.seq);
  if (evidence.cause !== undefined || evidence.of === undefined) return evidence.cause;
  return causeBehind(bySeq.get(evidence.of), visited, bySeq);
}
