import type { Pod } from "../api/pod.ts";
import type { PodRef } from "../journal/entry.ts";
import { type CgroupDriver, cgroupPath, podCgroup } from "../resources/cgroup-names.ts";
import { qosClass } from "../resources/qos.ts";
import type { PodStatus } from "../runtime/pod-status.ts";

/** A running container as statistics need it. */
export interface StatsContainer {
  readonly name: string;
  readonly id: string;
  readonly image: string;
  /** Wall clock ms. */
  readonly createdMs: number;
  readonly startedMs: number;
}

/** A pod with at least one running container. */
export interface StatsPod {
  readonly ref: PodRef;
  readonly pod: Pod;
  /** Below the root of the hierarchies. */
  readonly cgroup: string;
  readonly sandboxId: string;
  /** When its sandbox was made, wall clock ms. */
  readonly createdMs: number;
  readonly containers: readonly StatsContainer[];
}

export interface CgroupNaming {
  readonly cgroupRoot: string;
  readonly cgroupDriver: CgroupDriver;
}

/** What of a pod is measured: what runs of its newest sandbox. Undefined while nothing does, as upstream. Pure. */
export function statsPod(pod: Pod, observed: PodStatus, naming: CgroupNaming): StatsPod | undefined {
  const sandbox = observed.sandboxes.find(({ ready }) => ready);
  const running = observed.containers.filter(({ state }) => state === "running");
  if (sandbox === undefined || running.length === 0) return undefined;
  const { namespace, name, uid } = pod.metadata;
  return {
    ref: { namespace, name, uid },
    pod,
    cgroup: cgroupPath(podCgroup(naming.cgroupRoot, qosClass(pod), uid), naming.cgroupDriver),
    sandboxId: sandbox.id,
    createdMs: milliseconds(sandbox.createdAt),
    containers: running.map((container) => ({
      name: container.name,
      id: container.id,
      image: container.image,
      createdMs: milliseconds(container.createdAt),
      startedMs: milliseconds(container.startedAt),
    })),
  };
}

function milliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e6;
}
