import type { Facts, Terms } from "./term.ts";

/** The journal itself, and podwright's runs. */
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
  /** Replaces an entry of another version with an unknown name; of any kind. */
  UnknownEntry: { kind: "note" },
} as const satisfies Terms;

export const journalFacts = {
  /** Replaces a cause of another version with an unknown code. */
  UnknownCause: {},
} as const satisfies Facts;
