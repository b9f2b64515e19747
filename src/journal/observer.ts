import type { Clock } from "../ports/clock.ts";
import type { PodRef } from "./entry.ts";

/** What is probed. */
export interface ProbeName {
  readonly pod: PodRef;
  readonly container: string;
  readonly type: "liveness" | "readiness" | "startup";
}

/** States of a pod's worker that have steps. */
export type StepState = "syncing" | "terminating" | "terminated" | "finished";

/** Told of what is not in the journal, for metrics. Returns at once, throws nothing, decides nothing. */
export interface Observer {
  /** A unary CRI call has ended. @param method as CRI spells it */
  called(method: string, durationMs: number, failed: boolean): void;
  /** The runtime was listed. */
  relisted(durationMs: number): void;
  /** One pod was looked at. */
  inspected(durationMs: number): void;
  probed(probe: ProbeName, outcome: "success" | "warning" | "failure" | "error", durationMs: number): void;
  /** It is not probed any more. */
  probeEnded(probe: ProbeName): void;
  /** A worker has done a step for its pod. */
  stepped(pod: PodRef, state: StepState, durationMs: number): void;
}

/** Awaits a worker's step and tells how long it took, however it ended. */
export async function measureStep(
  observer: Observer | undefined,
  clock: Clock,
  pod: PodRef,
  state: StepState,
  step: Promise<void>,
): Promise<void> {
  const beganMs = clock.monotonic();
  try {
    await step;
  } finally {
    observer?.stepped(pod, state, clock.monotonic() - beganMs);
  }
}
