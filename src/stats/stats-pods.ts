import { podRef } from "../runtime/pod-ref.ts";
import type { Pod } from "../api/pod.ts";
import type { PodRef } from "../journal/entry.ts";
import { type CgroupDriver, cgroupPath, podCgroup } from "../resources/cgroup-names.ts";
import { qosClass } from "../resources/qos.ts";
import type { RuntimeWays } from "./runtime-ways.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";

/** A running container, for statistics. */
export interface StatsContainer {
  readonly name: string;
  readonly id: string;
  /** The runtime's name for it: cAdvisor's label `name`. */
  readonly alias: string;
  readonly image: string;
  /** Wall clock ms. */
  readonly createdMs: number;
  readonly startedMs: number;
}

/** A pod with a ready sandbox. */
export interface StatsPod {
  readonly ref: PodRef;
  readonly pod: Pod;
  /** Below the root of the hierarchies; undefined: it has none of its own. */
  readonly cgroup: string | undefined;
  /** The parent of its containers' cgroups. */
  readonly containersCgroup: string;
  readonly sandboxId: string;
  readonly sandboxAlias: string;
  /** The container name for the sandbox; empty: not reported. */
  readonly sandboxContainer: string;
  /** Creation time of its sandbox, wall clock ms. */
  readonly createdMs: number;
  /** Those that run; none e.g. between two restarts. */
  readonly containers: readonly StatsContainer[];
}

export interface StatsNaming {
  /** Undefined: pods have no cgroups of their own. */
  readonly cgroupRoot: string | undefined;
  readonly cgroupDriver: CgroupDriver;
  readonly runtime: RuntimeWays;
}

/** What upstream omits from everything but `/metrics/cadvisor` while it is not so. Pure. */
export function hasRunningContainer({ containers }: StatsPod): boolean {
  return containers.length > 0;
}

/** The measured parts of a pod: its ready sandbox and the running containers. Undefined without such a sandbox. Pure. */
export function statsPod(pod: Pod, observed: PodStatus, naming: StatsNaming): StatsPod | undefined {
  const sandbox = observed.sandboxes.find(({ ready }) => ready);
  const running = observed.containers.filter(({ state }) => state === "running");
  if (sandbox === undefined) return undefined;
  const ref = podRef(pod);
  const { sandboxContainer, nameOf } = naming.runtime;
  const { cgroupRoot, cgroupDriver } = naming;
  const cgroup = cgroupRoot && cgroupPath(podCgroup(cgroupRoot, qosClass(pod), ref.uid), cgroupDriver);
  return {
    ref,
    pod,
    cgroup,
    containersCgroup: cgroup ?? naming.runtime.ownCgroup[naming.cgroupDriver],
    sandboxId: sandbox.id,
    sandboxAlias: nameOf(sandbox.id, sandboxContainer, ref, sandbox.attempt),
    sandboxContainer,
    createdMs: milliseconds(sandbox.createdAt),
    containers: running.map((container) => ({
      name: container.name,
      id: container.id,
      alias: nameOf(container.id, container.name, ref, container.restartCount),
      image: container.image,
      createdMs: milliseconds(container.createdAt),
      startedMs: milliseconds(container.startedAt),
    })),
  };
}

function milliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e6;
}
