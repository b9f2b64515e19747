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
  /** The registry must be contacted. */
  pulls?: boolean;
}

/** Why a pod may use a present image, or why its registry is contacted: upstream's values. */
export type AccessJudgement =
  | "credentialPolicyAllowed"
  | "credentialRecordFound"
  | "mustAuthenticate"
  /** The records or the pod's credentials can't be read. */
  | "error";

/** Observes what is not in the journal, for metrics. Returns immediately, throws nothing, decides nothing. */
export interface Observer {
  /** A unary CRI call has ended. @param method as CRI spells it */
  called(method: string, durationMs: number, failed: boolean): void;
  /** The runtime was listed. */
  relisted(durationMs: number): void;
  /** One pod was inspected. */
  inspected(durationMs: number): void;
  probed(probe: ProbeName, outcome: "success" | "warning" | "failure" | "error", durationMs: number): void;
  /** It is not probed any more. */
  probeEnded(probe: ProbeName): void;
  /** A worker has done a step for its pod. */
  stepped(pod: PodRef, state: StepState, durationMs: number): void;
  /** A pod starts under the UID of one that was still stopping when it arrived. */
  podReturned(isStatic: boolean): void;
  /** Leftovers of removed pods were searched. @param failed those that could not be removed */
  leftoversSwept(found: number, failed: number): void;
  /** A container requested its image, with the result. */
  imageAsked(policy: string, asked: AskedImage): void;
  /** Whether a pod may use an image that is on the node was judged. */
  accessJudged(judgement: AccessJudgement): void;
}

/** Awaits a worker's step and measures it, however it ends. */
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
