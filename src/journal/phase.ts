import type { Ending } from "./steps.ts";
import type { PhaseKind } from "./vocabulary/term.ts";

/** One part of a start-up. */
export interface Phase {
  readonly kind: PhaseKind;
  readonly label: string;
  readonly container?: string;
  /** Milliseconds since the pod's first entry. */
  readonly offsetMs: number;
  /** With `queuedMs`; for unfinished phases: so far. */
  readonly durationMs: number;
  /** The part of it that was spent waiting for a place among the starts or the pulls. */
  readonly queuedMs?: number;
  readonly result: Ending["result"];
}

export interface BlamedPhase extends Phase {
  /** On the critical chain: had it been shorter, the pod would have been up sooner. */
  readonly critical: boolean;
  /** The longest of the critical chain. */
  readonly longest: boolean;
}
