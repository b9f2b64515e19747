import type { Pod } from "../api/pod.ts";
import type { PodActionsContext } from "../runtime/actions/pod-actions-context.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";

/** One decision: all that `computePodActions` was given, and what it gave. */
export interface Decision {
  readonly pod: Pod;
  readonly status: PodStatus;
  readonly context: PodActionsContext;
  readonly actions: PodActions;
}

/** Keeps decisions for another time (src/replay/). */
export interface DecisionRecorder {
  /** Called at once after the decision, while its context still holds. Never throws, and keeps nobody waiting. */
  record(decision: Decision): void;
}
