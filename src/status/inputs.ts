import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import type { ContainerId } from "../base/ids.ts";
import type { Ending } from "../pods/ending.ts";
import type { ResizeView } from "../pods/pod-resize.ts";
import type { ProbeState } from "../prober/probe-state.ts";
import type { PodStatus as RuntimePodStatus } from "../runtime/status/pod-status.ts";

/** Why a container could not be started. */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

/** An ending by which the node itself has failed a pod. */
export type Failure = Pick<Ending, "cause" | "outcome" | "disruption">;

/** Everything that a pod's status is made from. */
export interface StatusInputs {
  readonly pod: Pod;
  /** What the runtime shows of the pod. */
  readonly podStatus: RuntimePodStatus;
  /** Unset: as podStatus says, which leaves out a container whose postStart hook runs. That one counts too. */
  readonly isInitialized?: boolean;
  /** By container name; absent for containers that could be started last time. */
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  /** Containers whose start this life has tried: why others wait is told by `previous`. */
  readonly tried: ReadonlySet<string>;
  /** The status generated before, or the API server's after a restart; undefined for a new pod. */
  readonly previous: PodStatus | undefined;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /** When the node first saw the pod, likewise; undefined: now. */
  readonly startedAt?: number | undefined;
  /** The node's addresses, the primary one first; empty to say nothing of them, as a kubelet without a cluster does. */
  readonly hostIPs: readonly string[];
  /** Name of the runtime for container ids: `containerd`. */
  readonly runtimeName: string;
  /** Nothing of the pod will be restarted: it is being stopped, or has been. */
  readonly podIsTerminal: boolean;
  /** Something of the pod runs, or may be about to; of one that is not being stopped that is never ruled out. */
  readonly mayRun?: boolean;
  /** Set when the node refuses or fails the pod: it is Failed, with code and message of the cause. */
  readonly failure?: Failure;
  /** What containers left as termination message, by container id. */
  readonly terminationMessages: ReadonlyMap<ContainerId, string>;
  /** By container name. */
  readonly probes: ReadonlyMap<string, ProbeState>;
  /** Whether the runtime can make mounts read-only all the way down. */
  readonly recursiveReadOnlyMounts: boolean;
  /** How far the pod is with its resources; undefined: nothing is known but its spec. */
  readonly resize?: ResizeView | undefined;
}
