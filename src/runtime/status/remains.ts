import type { ContainerId } from "../../base/ids.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "./pod-status.ts";

/** What is left to stop of a pod. */
export interface Remains {
  readonly containers: readonly ContainerStatus[];
  /** Created but never started. */
  readonly unstarted: readonly ContainerStatus[];
  readonly sandboxes: readonly SandboxStatus[];
  /** Maximum remaining seconds of single containers, by ID. */
  readonly graces?: ReadonlyMap<ContainerId, number>;
}

/**
 * Containers that are or may be running, and every sandbox: one that died by itself holds its network until it is
 * stopped.
 */
export function remainsOf(status: PodStatus): Remains {
  const unstarted = status.containers.filter(({ state }) => state === "created");
  return { containers: status.containers.filter(mayRun), unstarted, sandboxes: status.sandboxes };
}

/** True when nothing of the pod runs. */
export function hasStopped({ containers, sandboxes }: PodStatus): boolean {
  return !containers.some(mayRun) && !sandboxes.some((sandbox) => sandbox.ready);
}

function mayRun({ state }: ContainerStatus): boolean {
  return state === "running" || state === "unknown";
}
