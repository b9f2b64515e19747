import type { Pod } from "../../api/pod.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import type { GarbagePolicy } from "../actions/garbage.ts";
import type { PodActions } from "../actions/pod-actions.ts";
import type { Effects } from "../effects.ts";
import type { ImageProvider, VolumeProvider } from "../providers.ts";
import type { PodStatus } from "../status/pod-status.ts";
import type { Remains } from "../status/remains.ts";
import type { GarbageCollector } from "./collect-garbage.ts";
import type { PodOperation } from "./pod-operation.ts";
import type { PodStopper, StopTarget } from "./pod-stopper.ts";
import { PodSync, type SyncParts } from "./pod-sync.ts";
import type { PodRemover, Removal } from "./remove-pod.ts";

export interface RuntimeParts {
  readonly sync: SyncParts;
  readonly stopper: PodStopper;
  readonly collector: GarbageCollector;
  readonly remover: PodRemover;
  readonly images: Pick<ImageProvider, "retryNow">;
  readonly volumes: Pick<VolumeProvider, "retryNow">;
}

/** Everything that a pod's worker does with its pod (upstream: kubeGenericRuntimeManager). */
export class PodRuntime {
  readonly #effects: Effects;
  readonly #parts: RuntimeParts;

  constructor(effects: Effects, parts: RuntimeParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /** See {@link PodSync}. */
  syncPod(pod: Pod, status: PodStatus, actions: PodActions): PodOperation[] {
    return new PodSync(this.#effects, this.#parts.sync, pod, status).operations(actions);
  }

  /** See {@link PodStopper}. */
  killPod(target: StopTarget, remains: Remains, signal: AbortSignal): Promise<void> {
    return this.#parts.stopper.stopPod(target, remains, signal);
  }

  /** Ends the back-offs of the pod's image pulls and volumes. */
  retryNow(pod: PodRef): void {
    this.#parts.images.retryNow(pod);
    this.#parts.volumes.retryNow(pod);
  }

  /** See {@link GarbageCollector}. */
  collectGarbage(pod: PodRef, status: PodStatus, policy: GarbagePolicy, signal: AbortSignal): Promise<boolean> {
    return this.#parts.collector.collect(pod, status, policy, signal);
  }

  /** Releases an ended pod's shared resources: its logs and messages stay. */
  release(pod: PodRef, cause: Cause, signal: AbortSignal): Promise<void> {
    return this.#parts.remover.release(pod, cause, signal);
  }

  /** See {@link PodRemover}. */
  removePod(pod: PodRef, status: PodStatus, removal: Removal, signal: AbortSignal): Promise<void> {
    return this.#parts.remover.remove(pod, status, removal, signal);
  }
}
