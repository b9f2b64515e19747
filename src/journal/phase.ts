import type { Ending } from "./steps.ts";

/**
 * What a part of a start-up was spent on. `run`: a container's run to its end. `sidecar`: until one was ready, for which
 * the containers after it wait. `gap`: on the chain, between two phases that the journal tells of.
 */
export type PhaseKind =
  | "wait"
  | "volume"
  | "sandbox"
  | "image"
  | "create"
  | "start"
  | "hook"
  | "run"
  | "sidecar"
  | "ready"
  | "other"
  | "gap";

/** One part of a start-up. */
export interface Phase {
  readonly kind: PhaseKind;
  readonly label: string;
  readonly container?: string;
  /** Milliseconds since the pod's first entry. */
  readonly offsetMs: number;
  /** With `queuedMs`; of what goes on: so far. */
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
