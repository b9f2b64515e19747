import { invariant } from "../base/invariant.ts";
import type { ContainerId } from "../base/ids.ts";
import { type Ending, isByNode } from "./ending.ts";

/**
 * Where a pod is in its life on this node (upstream's SyncPod, SyncTerminatingPod, SyncTerminatedPod).
 *
 * syncing: it should run. terminating: its containers are being stopped and nothing is started any more. terminated:
 * all has stopped; remains are kept while the pod is desired. finished: removed from the node.
 */
export type WorkerState = { readonly kind: "syncing" } | Terminating | Terminated | { readonly kind: "finished" };

/** How a pod is stopped, and by when. */
interface Stop {
  readonly ending: Ending;
  /** Monotonic ms at which SIGKILL is due. It only gets earlier, and also applies to containers that start late. */
  readonly killAtMs: number;
  /** The same for containers with less time. */
  readonly killsAtMs?: ReadonlyMap<ContainerId, number>;
}

export interface Terminating extends Stop {
  readonly kind: "terminating";
}

export interface Terminated extends Stop {
  readonly kind: "terminated";
  /** It has released its resources, volumes and cgroup included. */
  readonly released: boolean;
  /** Its end is on the disk: what it left in the runtime is no longer needed to know it. */
  readonly recorded: boolean;
}

/** Whether the pod has stopped for good and released its resources. Undefined: the pod is gone. */
export function hasReleased(state: WorkerState | undefined): boolean {
  return state === undefined || state.kind === "finished" || (state.kind === "terminated" && state.released);
}

/** The legal next states. A pod that is terminating never runs again under the same UID. */
const next: Readonly<Record<WorkerState["kind"], readonly WorkerState["kind"][]>> = {
  syncing: ["terminating"],
  terminating: ["terminating", "terminated"],
  terminated: ["finished"],
  finished: [],
};

/** Whether the transition is legal. */
export function checkTransition(from: WorkerState, to: WorkerState): void {
  // An ended pod never runs again under its UID.
  const isLegal = next[from.kind].includes(to.kind);
  invariant("worker states change in legal order", isLegal, () => `it cannot go from ${from.kind} to ${to.kind}`);
}

/**
 * The state after a termination request, by upstream's grace period arithmetic: at least 1 s, and a later request can
 * only shorten the remaining time.
 * @param nowMs monotonic
 */
export function terminate(state: WorkerState, ending: Ending, nowMs: number): WorkerState {
  const { graceSeconds, graces = [] } = ending;
  const atMs = (seconds: number): number => nowMs + Math.max(1, seconds) * 1000;
  const killAtMs = Math.max(...[graceSeconds, ...graces.map(({ seconds }) => seconds)].map(atMs));
  switch (state.kind) {
    case "syncing": {
      if (graces.length === 0) return { kind: "terminating", ending, killAtMs };
      const killsAtMs = new Map(graces.map(({ id, seconds }) => [id, atMs(seconds)]));
      return { kind: "terminating", ending, killAtMs, killsAtMs };
    }
    case "terminating":
      if (killAtMs < state.killAtMs) return { ...state, ending: sooner(state.ending, ending), killAtMs };
      return failsFirst(state.ending, ending)
        ? { ...state, ending: { ...ending, graceSeconds: state.ending.graceSeconds } }
        : state;
    case "terminated":
    case "finished":
      return state;
  }
}

/**
 * A pod ended by the node keeps that reason, also when it is deleted meanwhile with a shorter grace period. If the node
 * ends it twice, as a preempted pod that is evicted, the last reason counts, as upstream; but one past its deadline has
 * failed, however its containers exit.
 */
function sooner(first: Ending, second: Ending): Ending {
  if (first.outcome === "asContainers") return second;
  if (!isByNode(second)) return { ...first, graceSeconds: second.graceSeconds };
  return first.outcome === "failed" ? { ...second, outcome: "failed" } : second;
}

/** A pod that is being deleted, and that an earlier run of the kubelet ended, keeps its reason with any grace period. */
function failsFirst(first: Ending, second: Ending): boolean {
  return first.outcome === "asContainers" && !first.lasts && isByNode(second);
}
