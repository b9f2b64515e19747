import { normal, type Terms } from "./term.ts";

/** Of a shutdown of the node. */
export const shutdownTerms = {
  Shutdown: { kind: "observation", event: normal },
  ShutdownCancelled: { kind: "observation", event: { type: "Normal", reason: "Shutdown" } },
  ShutdownGroupEnded: { kind: "note" },
  /** Of a pod that is ended for it. */
  Terminated: { kind: "decision" },
} as const satisfies Terms;
