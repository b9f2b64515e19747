import type { PodStatus as ApiPodStatus } from "../api/status.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import { immediateGraceSeconds } from "./evicted.ts";
import { hasReleased, type Terminated, type Terminating } from "../pods/worker-state.ts";
import type { WorkerView } from "../pods/worker-dependencies.ts";

/** A pod as far as evictions need it. */
export interface EvictionPod {
  readonly view: Pick<WorkerView, "ref" | "pod" | "state" | "status">;
  /** As last reported; undefined: not yet. */
  readonly status?: Pick<ApiPodStatus, "phase" | "reason"> | undefined;
  /** No source has the pod any more. */
  readonly forgotten: boolean;
}

/** How long an evicted pod is waited for after its grace period (upstream's podCleanupTimeout). */
const cleanupMs = 30_000;

/** Evicted pods that still hold resources, and those that should not any more. */
export interface VictimsLook {
  readonly isPending: boolean;
  /** Names of those whose time has run out since the last look. */
  readonly overdue: readonly string[];
}

/**
 * Evicted pods that still hold resources of the node, also those that an earlier run evicted: how a pod ends is on the
 * disk before anything of it is stopped, and its status may be on the API server.
 */
export class Victims {
  readonly #pods: () => readonly EvictionPod[];
  readonly #maxGraceMs: number;
  /** When the wait for each ends, monotonic ms. A shorter grace period does not end it sooner. */
  #dueMs: ReadonlyMap<PodUid, number> = new Map();
  #overdue: ReadonlySet<PodUid> = new Set();

  /** @param maxPodGraceSeconds the longest grace period of an eviction */
  constructor(pods: () => readonly EvictionPod[], maxPodGraceSeconds: number) {
    this.#pods = pods;
    this.#maxGraceMs = Math.max(immediateGraceSeconds, maxPodGraceSeconds) * 1000;
  }

  look(nowMs: number): VictimsLook {
    const held = this.#pods().flatMap((each) => {
      const stop = stopOf(each);
      return stop === undefined ? [] : [{ ref: each.view.ref, stop }];
    });
    const before = this.#dueMs;
    // One that an earlier version evicted is stopped with its own grace period, which may be hours.
    const dueMs = ({ killAtMs }: Terminating | Terminated): number =>
      Math.min(killAtMs, nowMs + this.#maxGraceMs) + cleanupMs;
    this.#dueMs = new Map(held.map(({ ref: { uid }, stop }) => [uid, before.get(uid) ?? dueMs(stop)]));
    const late = held.filter(({ ref }) => nowMs >= (this.#dueMs.get(ref.uid) ?? 0));
    const told = this.#overdue;
    this.#overdue = new Set(late.map(({ ref }) => ref.uid));
    const overdue = late.filter(({ ref }) => !told.has(ref.uid));
    return {
      isPending: late.length < held.length,
      overdue: overdue.map(({ ref }) => `${ref.namespace}/${ref.name}`),
    };
  }
}

/** Whether the pod was evicted and still holds resources. */
export function isVictim(pod: EvictionPod): boolean {
  return stopOf(pod) !== undefined;
}

/** How an evicted pod is stopped; undefined: it is none, or holds nothing any more. */
function stopOf({ view: { state }, status }: EvictionPod): Terminating | Terminated | undefined {
  if (state.kind === "syncing" || state.kind === "finished" || hasReleased(state)) return undefined;
  const { cause, outcome } = state.ending;
  // One that was never admitted holds nothing.
  if (outcome === "refused") return undefined;
  // Of a pod that had ended before this run only the API server may know why.
  const isSaidToBe = status?.phase === "Failed" && status.reason === "Evicted";
  return isSaidToBe || isForEviction(cause) ? state : undefined;
}

function isForEviction(cause: Cause | undefined): boolean {
  return cause !== undefined && (cause.code === "Evicted" || isForEviction(cause.because));
}
