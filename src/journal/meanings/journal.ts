import type { journalFacts, journalTerms } from "../vocabulary/journal.ts";
import type { Meanings } from "./meaning.ts";

const report = "Report it as a podwright bug, with the entry.";

export const journalMeanings = {
  PodwrightStarted: {
    means: "podwright started. An action before it without an outcome was interrupted; it may have been carried out.",
  },
  JournalGap: {
    means: "The reader was slower than the journal, and entries were skipped.",
    remedy: "Read again from the start.",
  },
  JournalProblem: {
    means: "The journal on disk is incomplete or cannot be used; podwright continues with the journal in memory.",
    remedy: "Check the disk of the state directory: free space, permissions, errors.",
  },
  JournalWritable: { means: "The journal can be written again after a failure; some entries may be missing on disk." },
  InvariantBroken: { means: "An internal invariant was violated; podwright continues.", remedy: report },
  MissingCause: { means: "An action was requested without a cause.", remedy: report },
  StopRequested: { means: "A user requested to stop the pod, e.g. with podwright stop." },
  RetryRequested: { means: "A user requested to end the pod's back-offs and to retry at once." },
  GarbageRequested: { means: "A user requested to remove unused images and dead containers." },
  UnknownEntry: { means: "The entry was written by another version of podwright; its message is all that is known." },
  UnknownCause: { means: "The cause was written by another version of podwright; its message is all that is known." },
} as const satisfies Meanings<keyof (typeof journalTerms & typeof journalFacts)>;
