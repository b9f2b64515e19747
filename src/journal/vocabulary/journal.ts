import type { Facts, Terms } from "./term.ts";

/** Of the journal itself, and of podwright's lives. */
export const journalTerms = {
  PodwrightStarted: { kind: "note" },
  JournalGap: { kind: "note" },
  JournalProblem: { kind: "note" },
  JournalWritable: { kind: "note" },
  InvariantBroken: { kind: "note" },
  /** An action was requested without a cause, which is a defect. */
  MissingCause: { kind: "note" },
  StopRequested: { kind: "input" },
  RetryRequested: { kind: "input" },
  GarbageRequested: { kind: "input" },
  /** Stands for an entry of another version whose name this one does not know; of any kind. */
  UnknownEntry: { kind: "note" },
} as const satisfies Terms;

export const journalFacts = {
  /** Stands for a cause of another version whose code this one does not know. */
  UnknownCause: {},
} as const satisfies Facts;
