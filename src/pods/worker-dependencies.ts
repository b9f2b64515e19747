import type { Pod } from "../api/pod.ts";
import type { PodPhase } from "../api/status.ts";
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
import type { StopHold } from "./pod-termination.ts";
import type { Waiting } from "./start-failures.ts";
import type { WorkerState } from "./worker-state.ts";

export interface WorkerConfig {
  /** Interval between syncs of a pod at rest, ×1 to ×1.5: 60 s. */
  readonly syncFrequencyMs: number;
  /** After a failure, ×1 to ×1.5: 10 s. */
  readonly errorBackOffMs: number;
  /** How long a worker waits for a fresh observation before it reports that the runtime hangs. */
  readonly observeLimitMs: number;
  /** Longest crash-loop back-off (crashLoopBackOff.maxContainerRestartPeriod). */
  readonly maxContainerRestartPeriodMs: number;
  readonly garbage: GarbagePolicy;
}

/** What a worker publishes of its pod after each step; publishing only reads it. */
export interface WorkerView {
  readonly ref: PodRef;
  /** Undefined for a pod that only the runtime knows. */
  readonly pod: Pod | undefined;
  readonly state: WorkerState;
  readonly status: PodStatus;
  /** Instances that do not count as running yet: their postStart hook has not ended. */
  readonly starting: ReadonlySet<ContainerId>;
  readonly waiting: ReadonlyMap<string, Waiting>;
  /** Containers with a start attempt in this run. For others the status of an earlier run counts. */
  readonly tried: ReadonlySet<string>;
  /** Instances that were stopped to be restarted, whatever their exit code. */
  readonly restarting: ReadonlySet<ContainerId>;
  /** Termination messages, by container ID. */
  readonly terminationMessages: ReadonlyMap<ContainerId, string>;
  /** When the node first saw the pod, wall clock ms; undefined before the first observation. */
  readonly startedAt?: number | undefined;
  /** Undefined before the first observation of the pod. */
  readonly resize?: ResizeView | undefined;
}

export interface WorkerDependencies {
  readonly effects: Pick<Effects, "clock" | "random" | "journal" | "log">;
  readonly observer?: Observer | undefined;
  /** Where a pod's checkpoint is stored. */
  readonly checkpoint: CheckpointDependencies;
  /** Where termination messages are read. */
  readonly messages: MessageDependencies;
  readonly runtime: PodRuntime;
  readonly volumes: Pick<VolumeProvider, "refresh">;
  readonly podCgroups: Pick<PodCgroupProvider, "readContainer" | "settle">;
  /** The CPU and memory last actuated for each pod's containers. */
  readonly actuated: Pick<ResourceRecord, "get" | "set">;
  readonly pleg: Pleg;
  readonly cache: PodCache;
  readonly probes: PodProbes;
  readonly allocations: AllocationManager;
  readonly config: WorkerConfig;
  /** Reserves what an admitted pod needs, and what it requests later. */
  readonly reserve: (pod: Pod, cause: Cause) => void;
  /** Whether pods get no sandbox for now; afterwards they are woken. */
  readonly holdsStarts: () => boolean;
  readonly holdsStop: StopHold;
  /** Other pods of the same full name in the runtime: they end before this one starts. */
  readonly rivals: (ref: PodRef) => Promise<readonly PodUid[]>;
  /** The pod's phase as last reported. */
  readonly phaseOf: (uid: PodUid) => PodPhase | undefined;
  /** Called after every step. */
  readonly publish: (view: WorkerView, cause: Cause) => void;
  /** Awaits a step, and measures it. */
  readonly measured: (pod: PodRef, state: StepState, step: Promise<void>) => Promise<void>;
  /** Undefined: decisions are not recorded. */
  readonly recorder: DecisionRecorder | undefined;
}
