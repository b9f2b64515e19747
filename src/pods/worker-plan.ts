import type { Cause, PodRef } from "../journal/entry.ts";
import type { PendingReason } from "../resources/resize-admission.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import type { WorkerState } from "./worker-state.ts";

/** What a worker would do at its next step, judged by what is known now. */
export interface WorkerPlan {
  readonly ref: PodRef;
  readonly state: WorkerState;
  /** Nobody wants the pod any more: once it has stopped, everything of it is removed. */
  readonly forgotten: boolean;
  /** UID of a pod of the same name that has to be gone first. */
  readonly behind: string | undefined;
  /** The pod is to be stopped because its activeDeadlineSeconds are over. */
  readonly overdue: Cause | undefined;
  /** Why the resources that the manifest asks for are not granted. */
  readonly pendingResize: PendingReason | undefined;
  /** Why the pod could not be set up the last time: its volumes, its network, its sandbox. */
  readonly setUpFailure: string | undefined;
  /** Operations that run at this moment: nothing is decided about what they work on. */
  readonly underWay: readonly string[];
  /** Why the runtime could not be asked about the pod the last time; the rest is judged by what it showed before. */
  readonly stale: string | undefined;
  /** Undefined when nothing is decided: the pod waits, is being stopped, or its sandbox is being made. */
  readonly actions: PodActions | undefined;
}
