import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { hasReleased } from "../pods/worker-state.ts";
import type { WorkerView } from "../pods/worker-dependencies.ts";

/** A pod as far as evictions need it. */
export interface EvictionPod {
  readonly view: Pick<WorkerView, "ref" | "pod" | "state" | "status">;
}

/** How long an evicted pod is waited for after its grace period (upstream's podCleanupTimeout). */
const cleanupMs = 30_000;

interface Victim {
  readonly name: string;
  /** Monotonic ms at which the wait ends. */
  readonly dueMs: number;
}

/** Evicted pods that still hold resources of the node. */
export class Victims {
  readonly #pods: () => readonly EvictionPod[];
  readonly #pending = new Map<PodUid, Victim>();

  constructor(pods: () => readonly EvictionPod[]) {
    this.#pods = pods;
  }

  add({ metadata }: Pod, graceSeconds: number, nowMs: number): void {
    const dueMs = nowMs + Math.max(1, graceSeconds) * 1000 + cleanupMs;
    this.#pending.set(metadata.uid, { name: `${metadata.namespace}/${metadata.name}`, dueMs });
  }

  /** Forgets pods that have finished or are overdue. @returns names of the overdue ones */
  look(nowMs: number): string[] {
    const states = new Map(this.#pods().map(({ view }) => [view.ref.uid, view.state] as const));
    const overdue: string[] = [];
    for (const [uid, { name, dueMs }] of this.#pending) {
      const isFinished = hasReleased(states.get(uid));
      if (!isFinished && nowMs < dueMs) continue;
      this.#pending.delete(uid);
      if (!isFinished) overdue.push(name);
    }
    return overdue;
  }

  get count(): number {
    return this.#pending.size;
  }
}
