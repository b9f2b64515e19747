import type { ContainerId, PodUid, SandboxId } from "../../base/ids.ts";
import type { IdRange } from "../config/id-ranges.ts";

export type ContainerState = "created" | "running" | "exited" | "unknown";

/** One container instance in the runtime (kubecontainer.Status upstream). Times are nanoseconds, 0n: not yet. */
export interface ContainerStatus {
  readonly id: ContainerId;
  readonly name: string;
  readonly sandboxId: SandboxId | undefined;
  readonly state: ContainerState;
  readonly createdAt: bigint;
  readonly startedAt: bigint;
  readonly finishedAt: bigint;
  readonly exitCode: number;
  /** The runtime's reason: `Completed`, `Error`, `OOMKilled`, `StartError` … */
  readonly reason: string;
  readonly message: string;
  /** Image reference as the runtime reports it. */
  readonly image: string;
  readonly imageId: string;
  /** annotation io.kubernetes.container.hash; empty when missing. */
  readonly hash: string;
  /** annotation io.kubernetes.container.restartCount. */
  readonly restartCount: number;
  readonly logPath: string;
  /** annotation io.kubernetes.pod.terminationGracePeriod of the time it was created, in seconds. */
  readonly terminationGracePeriodSeconds: number | undefined;
  readonly terminationMessagePath: string;
  /** The file on the node mounted at {@link terminationMessagePath}; empty when none. */
  readonly terminationMessageHostPath: string;
  readonly terminationMessagePolicy: string;
  /** The identity of its first process; undefined if the runtime does not report it (before CRI 1.31). */
  readonly user: ContainerUser | undefined;
  /** Undefined if the runtime does not report it (before CRI 1.25, e.g. containerd 1.6). */
  readonly resources?: ContainerResources | undefined;
  /** Its stop signal in the API's notation, e.g. `SIGTERM`; undefined if the runtime does not report it. */
  readonly stopSignal: string | undefined;
}

/** A container's resources as the runtime reports them: CPU in millicores, memory in bytes. */
export interface ContainerResources {
  readonly cpuRequest: bigint | undefined;
  readonly cpuLimit: bigint | undefined;
  readonly memoryLimit: bigint | undefined;
}

export interface ContainerUser {
  readonly uid: bigint;
  readonly gid: bigint;
  readonly supplementalGroups: readonly bigint[];
}

/** One pod sandbox in the runtime. */
export interface SandboxStatus {
  readonly id: SandboxId;
  readonly attempt: number;
  readonly ready: boolean;
  readonly createdAt: bigint;
  readonly hostNetwork: boolean;
  /** Empty for hostNetwork pods and for sandboxes without a network. */
  readonly ips: readonly string[];
  /** The node's IDs of its user namespace; undefined: the node's own users, or not reported. */
  readonly userIds?: IdRange | undefined;
  /** annotation kubernetes.io/config.source: the pod's source; undefined when missing. */
  readonly source?: string;
}

/**
 * One observation of a pod in the runtime (kubecontainer.PodStatus upstream). Sandboxes and containers are newest
 * first. Empty for a pod that the runtime does not know.
 */
export interface PodStatus {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly SandboxStatus[];
  readonly containers: readonly ContainerStatus[];
}

/** The newest instance of a container; undefined when there is none. */
export function findContainer(status: PodStatus, name: string): ContainerStatus | undefined {
  return status.containers.find((container) => container.name === name);
}

/** True when the status contains a container or sandbox of that ID. */
export function hasInstance({ containers, sandboxes }: PodStatus, id: string): boolean {
  return containers.some((container) => container.id === id) || sandboxes.some((sandbox) => sandbox.id === id);
}
