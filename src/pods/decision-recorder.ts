import type { Pod } from "../api/pod.ts";
import type { PodActionsContext } from "../runtime/actions/pod-actions-context.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";

/** One decision: the inputs of `computePodActions`, and its result. */
export interface Decision {
  readonly pod: Pod;
  readonly status: PodStatus;
  readonly context: PodActionsContext;
  readonly actions: PodActions;
}

/** Records decisions for a later replay (src/replay/). */
export interface DecisionRecorder {
  /** Called right after the decision, while its context is still valid. Never throws or blocks. */
  record(decision: Decision): void;
}
