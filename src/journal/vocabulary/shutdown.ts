import { normal, type Terms } from "./term.ts";

/** A shutdown of the node. */
export const shutdownTerms = {
  Shutdown: { kind: "observation", event: normal },
  ShutdownCancelled: { kind: "observation", event: { type: "Normal", reason: "Shutdown" } },
  ShutdownGroupEnded: { kind: "note" },
  /** A pod that is ended by the shutdown. */
  Terminated: { kind: "decision" },
} as const satisfies Terms;
