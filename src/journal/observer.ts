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

/** What became of a container's need of an image; undefined: it did not come to that. */
export interface AskedImage {
  /** The runtime has it. */
  present?: boolean;
  /** A registry has to be asked. */
  pulls?: boolean;
}

/** Why a pod may use an image that is on the node, or why its registry is asked: upstream's words. */
export type AccessJudgement =
  | "credentialPolicyAllowed"
  | "credentialRecordFound"
  | "mustAuthenticate"
  /** The records or the pod's credentials can't be read. */
  | "error";

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
  /** A pod begins under the UID of one that had still to end when it was wanted. */
  podReturned(isStatic: boolean): void;
  /** The node was looked through for what pods left that are gone. @param failed those of which it can't be removed */
  leftoversSwept(found: number, failed: number): void;
  /** A container asked for its image, and has it or does not get it. */
  imageAsked(policy: string, asked: AskedImage): void;
  /** Whether a pod may use an image that is on the node was judged. */
  accessJudged(judgement: AccessJudgement): void;
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
