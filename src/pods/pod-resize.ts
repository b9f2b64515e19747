import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { AllocationManager } from "../resources/allocation-manager.ts";
import type { PendingReason } from "../resources/resize-admission.ts";
import type { ResourceRecord } from "../resources/resource-record.ts";
import type { PodResources } from "../resources/resource-checkpoint.ts";
import type { Effects } from "../runtime/effects.ts";
import type { PodCgroupProvider } from "../runtime/providers.ts";
import type { CgroupState } from "../ports/cgroups.ts";
import type { ContainerStatus, PodStatus } from "../runtime/status/pod-status.ts";
import { disputed, withCgroups } from "../runtime/actions/reported-resources.ts";
import { resizeMessage } from "../resources/resize-summary.ts";
import { asReported, isResizing, withCarriedOut } from "../runtime/actions/resize-actions.ts";
import type { ResizeFacts } from "../runtime/actions/pod-actions-context.ts";

/** The resize conditions of a pod's status. */
export interface ResizeView {
  /** Condition PodResizePending: the manifest's resources are not allocated. */
  readonly pending: PendingReason | undefined;
  /** Condition PodResizeInProgress: the allocated resources are not actuated yet, with the last error. */
  readonly inProgress:
    | {
        readonly error: string | undefined;
        /** The generation that requested it; undefined when it was allocated in an earlier run, or has none. */
        readonly generation?: number | undefined;
      }
    | undefined;
  /** The resources last actuated for containers. */
  readonly actuated: PodResources | undefined;
}

interface ResizeDependencies {
  readonly effects: Pick<Effects, "clock" | "journal" | "log">;
  readonly allocations: AllocationManager;
  readonly actuated: Pick<ResourceRecord, "get" | "set">;
  readonly podCgroups: Pick<PodCgroupProvider, "readContainer" | "settle">;
}

const noResize: Cause = { code: "ResourcesDiffer", message: "its containers do not have the allocated resources" };

/** The present state of a pod's resize, which its worker may not have seen yet. */
export function resizeNow(
  { allocations, actuated }: { allocations: AllocationManager; actuated: Pick<ResourceRecord, "get"> },
  pod: Pod | undefined,
  seen: { readonly status: PodStatus; readonly resize?: ResizeView | undefined },
): ResizeView | undefined {
  if (pod === undefined) return undefined;
  const { uid } = pod.metadata;
  const given = actuated.get(uid);
  const resizing = isResizing(allocations.allocatedPod(pod), seen.status, given);
  return {
    pending: allocations.pending(uid),
    inProgress: resizing
      ? { error: seen.resize?.inProgress?.error, generation: allocations.granted(uid)?.generation }
      : undefined,
    actuated: given,
  };
}

/** The resize state of one pod. Belongs to its worker. */
export class PodResizing {
  readonly #deps: ResizeDependencies;
  readonly #pod: PodRef;
  /** The allocation that the rest refers to. */
  #cause: Cause | undefined;
  /** As last observed, with its allocated resources. */
  #seen: Pod | undefined;
  #inProgress = false;
  #error: string | undefined;
  #retryAtMs: number | undefined;
  /** A change failed: it may have been carried out nevertheless, so the record is unreliable. */
  #isUnsure = false;
  #status: PodStatus | undefined;
  /** The record has been compared with the runtime in this run. */
  #isRecordRight = false;

  constructor(deps: ResizeDependencies, pod: PodRef) {
    this.#deps = deps;
    this.#pod = pod;
  }

  /** The pod with its allocated resources, which may differ from its manifest. */
  granted(pod: Pod | undefined): Pod | undefined {
    return pod && this.#deps.allocations.allocatedPod(pod);
  }

  /**
   * What must be done before a decision: allocations must be on disk first, and a runtime that has forgotten resources
   * must not be trusted. Undefined: nothing.
   * @param pod undefined: no action follows
   */
  prepare(pod: Pod | undefined, status: PodStatus): Promise<PodStatus> | undefined {
    if (pod === undefined) return undefined;
    const { allocations, actuated } = this.#deps;
    const saving = allocations.saved();
    const recorded = actuated.get(this.#pod.uid);
    const unsure = disputed(recorded, status);
    if (unsure.length === 0) return saving?.then(() => status);
    return this.#withCgroups(pod, status, unsure, saving);
  }

  async #withCgroups(
    pod: Pod,
    status: PodStatus,
    unsure: readonly ContainerStatus[],
    saving: Promise<void> | undefined,
  ): Promise<PodStatus> {
    const { actuated, podCgroups, effects } = this.#deps;
    const found = new Map<string, CgroupState>();
    for (const { id, name } of unsure) {
      try {
        const cgroup = await podCgroups.readContainer(pod, id);
        if (cgroup !== undefined) found.set(id, cgroup);
      } catch (error) {
        // It may have terminated, and its cgroup with it.
        effects.log.debug("cannot read a container's cgroup", {
          ...this.#pod,
          container: name,
          error: errorMessage(error),
        });
      }
    }
    await saving;
    return withCgroups(status, actuated.get(this.#pod.uid), found);
  }

  /** @param underWay a resize is in progress */
  facts(underWay: boolean): ResizeFacts {
    return { actuated: this.#given(), underWay, retryAtMs: this.#retryAtMs, cause: this.#cause ?? noResize };
  }

  /** Monotonic ms of the retry of a failed resize; undefined when it is due and waits for a container. */
  get retryAtMs(): number | undefined {
    const isToCome = (this.#retryAtMs ?? 0) > this.#deps.effects.clock.monotonic();
    return isToCome ? this.#retryAtMs : undefined;
  }

  /** Checks whether the allocated resources are actuated. @param pod as {@link granted} returns it */
  observe(pod: Pod, status: PodStatus): void {
    const { allocations, effects } = this.#deps;
    this.#putRight(pod, status);
    this.#seen = pod;
    this.#status = status;
    const cause = allocations.granted(this.#pod.uid)?.cause;
    if (cause !== this.#cause) {
      this.#cause = cause;
      this.#settled();
      this.#inProgress ||= cause !== undefined;
    }
    const given = this.#given();
    const resizing = isResizing(pod, status, given);
    // Actuated, although it was reported as failed: not repeated. The pod's cgroup is corrected by settle().
    if (!resizing && this.#isUnsure && given !== undefined) this.#deps.actuated.set(this.#pod.uid, given);
    this.#isUnsure &&= resizing;
    if (!resizing && this.#inProgress) {
      const message = "the pod's containers have the allocated resources";
      const why = this.#cause ?? noResize;
      const entry = effects.journal.record({
        kind: "observation",
        what: "ResizeCompleted",
        message,
        pod: this.#pod,
        cause: why,
        data: { eventMessage: this.#eventMessage("ResizeCompleted", pod) },
      });
      this.#settled();
      allocations.retry({ code: "ResizeCompleted", message: "a pod was resized", entry });
    }
    this.#inProgress = resizing;
  }

  /**
   * An earlier run may have actuated more than it recorded. Before the first resize of this run, what the runtime shows
   * counts as actuated; otherwise the next one would start from old values.
   */
  #putRight(pod: Pod, status: PodStatus): void {
    const { actuated } = this.#deps;
    const recorded = actuated.get(this.#pod.uid);
    if (this.#isRecordRight || recorded === undefined || !isResizing(pod, status, recorded)) return;
    this.#isRecordRight = true;
    actuated.set(this.#pod.uid, withCarriedOut(recorded, status, pod));
  }

  /** The resize failed. */
  failed(error: unknown, retryAtMs: number): void {
    const message = errorMessage(error);
    if (message !== this.#error) {
      const cause = this.#cause ?? noResize;
      const what = "ResizeError";
      const data = this.#seen && { eventMessage: this.#eventMessage(what, this.#seen, message) };
      this.#deps.effects.journal.record({
        kind: "observation",
        what,
        message,
        pod: this.#pod,
        cause,
        ...(data && { data }),
      });
    }
    this.#error = message;
    this.#retryAtMs = retryAtMs;
    this.#isUnsure = true;
  }

  /** Without a resize in progress the pod's cgroup must match; an earlier run may have left it otherwise. */
  async settle(pod: Pod): Promise<void> {
    if (this.#inProgress) return;
    try {
      await this.#deps.podCgroups.settle(pod);
    } catch (error) {
      this.#deps.effects.log.warn("cannot update a pod's cgroup", { ...this.#pod, error: errorMessage(error) });
    }
  }

  /** The obstacle is gone: retry immediately. */
  retryNow(): void {
    if (this.#retryAtMs !== undefined) this.#retryAtMs = this.#deps.effects.clock.monotonic();
  }

  view(): ResizeView {
    const { allocations, actuated } = this.#deps;
    const generation = allocations.granted(this.#pod.uid)?.generation;
    return {
      pending: allocations.pending(this.#pod.uid),
      inProgress: this.#inProgress ? { error: this.#error, generation } : undefined,
      actuated: actuated.get(this.#pod.uid),
    };
  }

  /** The actuated resources; while they are unsure, the runtime's values count. */
  #given(): PodResources | undefined {
    const recorded = this.#deps.actuated.get(this.#pod.uid);
    return this.#isUnsure && this.#status ? recorded && asReported(recorded, this.#status) : recorded;
  }

  #eventMessage(reason: string, pod: Pod, error?: string): string {
    const { generation } = this.#deps.allocations.granted(this.#pod.uid) ?? pod.metadata;
    return resizeMessage(reason, pod, generation, error);
  }

  #settled(): void {
    this.#error = undefined;
    this.#retryAtMs = undefined;
  }
}
