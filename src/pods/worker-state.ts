import { invariant } from "../base/invariant.ts";
import type { ContainerId } from "../base/ids.ts";
import type { Ending } from "./ending.ts";

/**
 * Where a pod is in its life on this node (upstream's SyncPod, SyncTerminatingPod, SyncTerminatedPod).
 *
 * syncing: it is to run. terminating: its containers are being stopped and nothing is started any more. terminated: all
 * has stopped; what is left stays to be looked at while the pod is wanted. finished: removed from the node.
 */
export type WorkerState = { readonly kind: "syncing" } | Terminating | Terminated | { readonly kind: "finished" };

/** How a pod is stopped, and by when. */
interface Stop {
  readonly ending: Ending;
  /** Monotonic ms at which SIGKILL is due. It only ever comes nearer, and counts also for what comes to run late. */
  readonly killAtMs: number;
  /** The same of containers that have less time. */
  readonly killsAtMs?: ReadonlyMap<ContainerId, number>;
}

export interface Terminating extends Stop {
  readonly kind: "terminating";
}

export interface Terminated extends Stop {
  readonly kind: "terminated";
  /** It holds nothing any more, no volumes either. */
  readonly released: boolean;
}

/** The legal next states. A pod that is terminating never runs again under the same UID. */
const next: Readonly<Record<WorkerState["kind"], readonly WorkerState["kind"][]>> = {
  syncing: ["terminating"],
  terminating: ["terminating", "terminated"],
  terminated: ["finished"],
  finished: [],
};

/** Whether the worker may take that step. */
export function checkTransition(from: WorkerState, to: WorkerState): void {
  // What has ended never runs again under its UID.
  const isLegal = next[from.kind].includes(to.kind);
  invariant("a pod's worker goes legal ways", isLegal, () => `it cannot go from ${from.kind} to ${to.kind}`);
}

/**
 * The state after somebody asks for termination, upstream's grace arithmetic: a grace is at least 1 s, and a later
 * request can only shorten the time that is left.
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
      return killAtMs < state.killAtMs ? { ...state, ending: sooner(state.ending, ending), killAtMs } : state;
    case "terminated":
    case "finished":
      return state;
  }
}

/** What the node failed the pod for stays its end, also when the pod is deleted meanwhile with less time to stop. */
function sooner(first: Ending, second: Ending): Ending {
  return first.outcome === "asContainers" ? second : { ...first, graceSeconds: second.graceSeconds };
}
