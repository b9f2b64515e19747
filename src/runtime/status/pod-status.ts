import type { ContainerId, PodUid, SandboxId } from "../../base/ids.ts";
import type { IdRange } from "../config/id-ranges.ts";

export type ContainerState = "created" | "running" | "exited" | "unknown";

/** One container instance as the runtime shows it (kubecontainer.Status upstream). Times are nanoseconds, 0n: not yet. */
export interface ContainerStatus {
  readonly id: ContainerId;
  readonly name: string;
  readonly sandboxId: SandboxId | undefined;
  readonly state: ContainerState;
  readonly createdAt: bigint;
  readonly startedAt: bigint;
  readonly finishedAt: bigint;
  readonly exitCode: number;
  /** The runtime's word: `Completed`, `Error`, `OOMKilled`, `StartError` … */
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
  /** The file on the node that is mounted at {@link terminationMessagePath}; empty when nothing is. */
  readonly terminationMessageHostPath: string;
  readonly terminationMessagePolicy: string;
  /** The identity its first process started with; undefined where the runtime does not tell (before CRI 1.31). */
  readonly user: ContainerUser | undefined;
  /** Undefined where the runtime does not tell (before CRI 1.25's implementations, e.g. containerd 1.6). */
  readonly resources?: ContainerResources | undefined;
  /** The signal that ends it as the API writes signals, e.g. `SIGTERM`; undefined where the runtime does not tell. */
  readonly stopSignal: string | undefined;
}

/** What a container has, as far as its runtime tells: CPU in thousandths, memory in bytes. */
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

/** One pod sandbox as the runtime shows it. */
export interface SandboxStatus {
  readonly id: SandboxId;
  readonly attempt: number;
  readonly ready: boolean;
  readonly createdAt: bigint;
  readonly hostNetwork: boolean;
  /** Empty for hostNetwork pods and for sandboxes without a network. */
  readonly ips: readonly string[];
  /** The node's ids that its users have; undefined: the node's own users, or the runtime does not tell. */
  readonly userIds?: IdRange | undefined;
  /** annotation kubernetes.io/config.source: which source its pod came from; undefined when it does not say. */
  readonly source?: string;
}

/**
 * Everything the runtime shows of one pod at one observation (kubecontainer.PodStatus upstream). Sandboxes and
 * containers are newest first. A pod that the runtime does not know has none of either.
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

/** True when a container or sandbox of that id is among those that the status shows. */
export function hasInstance({ containers, sandboxes }: PodStatus, id: string): boolean {
  return containers.some((container) => container.id === id) || sandboxes.some((sandbox) => sandbox.id === id);
}
