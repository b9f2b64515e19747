import type { Pod } from "../api/pod.ts";
import type { ContainerId, PodUid } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { Observer, StepState } from "../journal/observer.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { PodProbes } from "../prober/probe-manager.ts";
import type { AllocationManager } from "../resources/allocation-manager.ts";
import type { ResourceRecord } from "../resources/resource-record.ts";
import type { Effects } from "../runtime/effects.ts";
import type { PodRuntime } from "../runtime/operations/pod-runtime.ts";
import type { PodCgroupProvider, VolumeProvider } from "../runtime/providers.ts";
import type { MessageDependencies } from "../runtime/status/termination-messages.ts";
import type { GarbagePolicy } from "../runtime/actions/garbage.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { DecisionRecorder } from "./decision-recorder.ts";
import type { CheckpointDependencies } from "./pod-checkpoint.ts";
import type { ResizeView } from "./pod-resize.ts";
import type { Waiting } from "./start-failures.ts";
import type { WorkerState } from "./worker-state.ts";

export interface WorkerConfig {
  /** Between two looks at a pod at which nothing happens, ×1 to ×1.5: 60 s. */
  readonly syncFrequencyMs: number;
  /** After a failure, ×1 to ×1.5: 10 s. */
  readonly errorBackOffMs: number;
  /** How long a worker waits for a fresh observation before it says that the runtime hangs. */
  readonly observeLimitMs: number;
  /** Longest crash-loop back-off (crashLoopBackOff.maxContainerRestartPeriod). */
  readonly maxContainerRestartPeriodMs: number;
  readonly garbage: GarbagePolicy;
}

/** What a worker tells of its pod after each step; publishing only reads it. */
export interface WorkerView {
  readonly ref: PodRef;
  /** Undefined for a pod that only the runtime knows. */
  readonly pod: Pod | undefined;
  readonly state: WorkerState;
  readonly status: PodStatus;
  /** Instances that nobody is to take for running yet: their postStart hook has not ended. */
  readonly starting: ReadonlySet<ContainerId>;
  readonly waiting: ReadonlyMap<string, Waiting>;
  /** Containers whose start this life has tried. Of others counts what an earlier life has said. */
  readonly tried: ReadonlySet<string>;
  /** What containers that have ended left as termination message, by container id. */
  readonly terminationMessages: ReadonlyMap<ContainerId, string>;
  /** When the node first saw the pod, wall clock ms; undefined before the first look at it. */
  readonly startedAt?: number | undefined;
  /** Undefined before the first look at the pod. */
  readonly resize?: ResizeView | undefined;
}

export interface WorkerDependencies {
  readonly effects: Pick<Effects, "clock" | "random" | "journal" | "log">;
  readonly observer?: Observer | undefined;
  /** Where a pod's checkpoint is kept. */
  readonly checkpoint: CheckpointDependencies;
  /** Where termination messages are read. */
  readonly messages: MessageDependencies;
  readonly runtime: PodRuntime;
  readonly volumes: Pick<VolumeProvider, "refresh">;
  readonly podCgroups: Pick<PodCgroupProvider, "readContainer" | "settle">;
  /** What each pod's containers were last given of CPU and memory. */
  readonly actuated: Pick<ResourceRecord, "get" | "set">;
  readonly pleg: Pleg;
  readonly cache: PodCache;
  readonly probes: PodProbes;
  readonly allocations: AllocationManager;
  readonly config: WorkerConfig;
  /** Reserves what a pod that was let in needs of the node, and what it asks for since. */
  readonly reserve: (pod: Pod, cause: Cause) => void;
  /** Other pods of the same full name that the runtime still has: they end before this one starts. */
  readonly rivals: (ref: PodRef) => Promise<readonly PodUid[]>;
  /** Called after every step. */
  readonly publish: (view: WorkerView, cause: Cause) => void;
  /** Awaits a step, and tells how long it took. */
  readonly measured: (pod: PodRef, state: StepState, step: Promise<void>) => Promise<void>;
  /** Undefined: decisions are not recorded. */
  readonly recorder: DecisionRecorder | undefined;
}
