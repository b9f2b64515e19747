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
import { disputed, withCgroups } from "../runtime/actions/told-resources.ts";
import { resizeMessage } from "../resources/resize-summary.ts";
import { asTold, isResizing, withCarriedOut } from "../runtime/actions/resize-actions.ts";
import type { ResizeFacts } from "../runtime/actions/pod-actions-context.ts";

/** What a pod's status says of its resize. */
export interface ResizeView {
  /** Condition PodResizePending: what the manifest asks for is not granted. */
  readonly pending: PendingReason | undefined;
  /** Condition PodResizeInProgress: what is granted is not carried out yet, with the error of the last try. */
  readonly inProgress:
    | {
        readonly error: string | undefined;
        /** Of the pod's spec that asked for it; undefined when it was granted in an earlier life, or has none. */
        readonly generation?: number | undefined;
      }
    | undefined;
  /** What containers were last given. */
  readonly actuated: PodResources | undefined;
}

interface ResizeDependencies {
  readonly effects: Pick<Effects, "clock" | "journal" | "log">;
  readonly allocations: AllocationManager;
  readonly actuated: Pick<ResourceRecord, "get" | "set">;
  readonly podCgroups: Pick<PodCgroupProvider, "readContainer" | "settle">;
}

const noResize: Cause = { code: "ResourcesDiffer", message: "its containers do not have the allocated resources" };

/** How far a pod is with its resize at this moment, which its worker may not have seen yet. */
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

/** How far one pod is with the resources that it was granted. Belongs to its worker. */
export class PodResizing {
  readonly #deps: ResizeDependencies;
  readonly #pod: PodRef;
  /** The grant that the rest is about. */
  #cause: Cause | undefined;
  /** As it was last observed, with the resources that it was granted. */
  #seen: Pod | undefined;
  #inProgress = false;
  #error: string | undefined;
  #retryAtMs: number | undefined;
  /** A change failed: it may have been carried out all the same, and the record says otherwise. */
  #isUnsure = false;
  #status: PodStatus | undefined;
  /** What is recorded was compared with the runtime's word in this life. */
  #isRecordRight = false;

  constructor(deps: ResizeDependencies, pod: PodRef) {
    this.#deps = deps;
    this.#pod = pod;
  }

  /** The pod with the resources that it was granted, which may not be those that its manifest asks for. */
  granted(pod: Pod | undefined): Pod | undefined {
    return pod && this.#deps.allocations.allocatedPod(pod);
  }

  /**
   * What has to be there before anything is decided: nothing is done by what was granted before that is on the disk, nor by
   * what a runtime tells of resources that it has forgotten. Undefined: nothing has to.
   * @param pod undefined: nothing will be done
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
        // It may have ended, and its cgroup with it.
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

  /** @param underWay a resize is being carried out */
  facts(underWay: boolean): ResizeFacts {
    return { actuated: this.#given(), underWay, retryAtMs: this.#retryAtMs, cause: this.#cause ?? noResize };
  }

  /** Monotonic ms of the next try of a resize that failed; undefined when that is due, and waits for a container. */
  get retryAtMs(): number | undefined {
    const isToCome = (this.#retryAtMs ?? 0) > this.#deps.effects.clock.monotonic();
    return isToCome ? this.#retryAtMs : undefined;
  }

  /** Judges whether the pod has by now what it was granted. @param pod as {@link granted} gives it */
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
    // Done, though it was said to have failed: it is not done again. What is left of the pod's cgroup is settled.
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
   * An earlier life may have come further with a resize than it could note. Before the first one of this life, what the
   * runtime shows to be done counts as done: what is done next would begin at what containers had long ago.
   */
  #putRight(pod: Pod, status: PodStatus): void {
    const { actuated } = this.#deps;
    const recorded = actuated.get(this.#pod.uid);
    if (this.#isRecordRight || recorded === undefined || !isResizing(pod, status, recorded)) return;
    this.#isRecordRight = true;
    actuated.set(this.#pod.uid, withCarriedOut(recorded, status, pod));
  }

  /** The resize could not be carried out. */
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

  /** While nothing is resized, the pod's cgroup is as it should be; an earlier life may have left it otherwise. */
  async settle(pod: Pod): Promise<void> {
    if (this.#inProgress) return;
    try {
      await this.#deps.podCgroups.settle(pod);
    } catch (error) {
      this.#deps.effects.log.warn("cannot update a pod's cgroup", { ...this.#pod, error: errorMessage(error) });
    }
  }

  /** What keeps it is over: it is tried again at once. */
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

  /** What the pod's containers have, as far as anybody knows: while that is unsure, the runtime's word counts. */
  #given(): PodResources | undefined {
    const recorded = this.#deps.actuated.get(this.#pod.uid);
    return this.#isUnsure && this.#status ? recorded && asTold(recorded, this.#status) : recorded;
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
