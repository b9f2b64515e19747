import type { Pod } from "../api/pod.ts";
import type { PodPhase, PodStatus } from "../api/status.ts";
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

/** An ending by which the node itself rejected or ended a pod. */
export type Failure = Pick<Ending, "cause" | "outcome" | "disruption">;

/** The inputs of a pod's status. */
export interface StatusInputs {
  readonly pod: Pod;
  /** What the runtime shows of the pod. */
  readonly podStatus: RuntimePodStatus;
  /** Unset: same as podStatus, which excludes containers with a running postStart hook. This one includes them. */
  readonly isInitialized?: boolean;
  /** By container name; absent for containers without a start failure. */
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  /** Containers with a start attempt in this run: others wait as `previous` says. */
  readonly tried: ReadonlySet<string>;
  /** Instances that were stopped to be restarted, whatever their exit code. */
  readonly restarting: ReadonlySet<ContainerId>;
  /** The status generated before, or the API server's after a restart; undefined for a new pod. */
  readonly previous: PodStatus | undefined;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /** When the node first saw the pod, likewise; undefined: now. */
  readonly startedAt?: number | undefined;
  /** The node's addresses, the primary one first; empty: omitted, as by a standalone kubelet. */
  readonly hostIPs: readonly string[];
  /** Runtime name for container IDs: `containerd`. */
  readonly runtimeName: string;
  /** Nothing of the pod will be restarted: it is being stopped, or has been. */
  readonly podIsTerminal: boolean;
  /** Something of the pod runs or may start; for a pod that is not being stopped always possible. */
  readonly mayRun?: boolean;
  /** Set when the node rejects or ends the pod: it has failed with code and message of the cause, if not succeeded. */
  readonly failure?: Failure;
  /** The phase that an earlier run reported of completed containers: the runtime may not have all of them any more. */
  readonly endedPhase?: PodPhase | undefined;
  /** Termination messages, by container ID. */
  readonly terminationMessages: ReadonlyMap<ContainerId, string>;
  /** By container name. */
  readonly probes: ReadonlyMap<string, ProbeState>;
  /** Whether the pod's runtime handler supports recursive read-only mounts. */
  readonly recursiveReadOnlyMounts: boolean;
  /** The pod's resize state; undefined: only its spec is known. */
  readonly resize?: ResizeView | undefined;
}
