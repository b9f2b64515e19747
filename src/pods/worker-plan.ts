import type { PodUid } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { PendingReason } from "../resources/resize-admission.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import type { WorkerState } from "./worker-state.ts";

/** What a worker would do at its next step, from current knowledge. */
export interface WorkerPlan {
  readonly ref: PodRef;
  readonly state: WorkerState;
  /** An orphaned pod: once it has stopped, it is removed. */
  readonly forgotten: boolean;
  /** UID of a pod of the same name that must be removed first. */
  readonly behind: PodUid | undefined;
  /** The pod exceeds its activeDeadlineSeconds and is to be stopped. */
  readonly overdue: Cause | undefined;
  /** Why the manifest's resources are not allocated. */
  readonly pendingResize: PendingReason | undefined;
  /** Why the pod's last set-up failed: volumes, network, sandbox. */
  readonly setUpFailure: string | undefined;
  /** Operations in progress: what they work on is excluded from decisions. */
  readonly underWay: readonly string[];
  /** Why the last query of the runtime failed; the rest is based on its earlier state. */
  readonly stale: string | undefined;
  /** Undefined when nothing is decided: the pod waits, is being stopped, or its sandbox is being created. */
  readonly actions: PodActions | undefined;
}
