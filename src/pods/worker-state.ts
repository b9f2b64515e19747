import type { Cause } from "../journal/entry.ts";

/**
 * Where a pod is in its life on this node (upstream's SyncPod, SyncTerminatingPod, SyncTerminatedPod).
 *
 * syncing: it is to run. terminating: its containers are being stopped and nothing is started any more. terminated: all
 * has stopped; what is left stays to be looked at while the pod is wanted. finished: removed from the node.
 */
export type WorkerState = { readonly kind: "syncing" } | Terminating | Terminated | { readonly kind: "finished" };

export interface Terminated {
  readonly kind: "terminated";
  readonly cause: Cause;
  /** As it was while the pod was terminating: what comes to run late has until then. */
  readonly killAtMs: number;
  /** It holds nothing any more, no volumes either. */
  readonly released: boolean;
}

export interface Terminating {
  readonly kind: "terminating";
  readonly cause: Cause;
  /** Monotonic ms at which SIGKILL is due. It only ever comes nearer. */
  readonly killAtMs: number;
}

/** The legal next states. A pod that is terminating never runs again under the same UID. */
const next: Readonly<Record<WorkerState["kind"], readonly WorkerState["kind"][]>> = {
  syncing: ["terminating"],
  terminating: ["terminating", "terminated"],
  terminated: ["finished"],
  finished: [],
};

/** @throws Error for an illegal step: a defect that must not reach the runtime */
export function assertTransition(from: WorkerState, to: WorkerState): void {
  if (!next[from.kind].includes(to.kind)) throw new Error(`a pod worker cannot go from ${from.kind} to ${to.kind}`);
}

/**
 * The state after somebody asks for termination, upstream's grace arithmetic: a grace is at least 1 s, and a later
 * request can only shorten the time that is left.
 * @param nowMs monotonic
 */
export function terminate(state: WorkerState, cause: Cause, graceSeconds: number, nowMs: number): WorkerState {
  const killAtMs = nowMs + Math.max(1, graceSeconds) * 1000;
  switch (state.kind) {
    case "syncing":
      return { kind: "terminating", cause, killAtMs };
    case "terminating":
      return killAtMs < state.killAtMs ? { kind: "terminating", cause, killAtMs } : state;
    case "terminated":
    case "finished":
      return state;
  }
}
