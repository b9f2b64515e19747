import type { Ending } from "./steps.ts";
import type { PhaseKind } from "./vocabulary/term.ts";

/** A part of a start-up. */
export interface Phase {
  readonly kind: PhaseKind;
  readonly label: string;
  readonly container?: string;
  /** Milliseconds since the pod's first entry. */
  readonly offsetMs: number;
  /** Including `queuedMs`; for unfinished phases: so far. */
  readonly durationMs: number;
  /** The part spent waiting for a slot among the starts or pulls. */
  readonly queuedMs?: number;
  readonly result: Ending["result"];
}

export interface BlamedPhase extends Phase {
  /** On the critical chain: a shorter phase would have made the pod ready sooner. */
  readonly critical: boolean;
  /** The longest phase of the critical chain. */
  readonly longest: boolean;
}
