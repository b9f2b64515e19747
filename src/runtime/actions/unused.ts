import type { ContainerStatus, PodStatus, SandboxStatus } from "../status/pod-status.ts";
import { containerGarbage, type GarbagePolicy, sandboxGarbage } from "./garbage.ts";

/** The parts of a pod that may be removed, and why the rest stays. */
export interface UnusedParts {
  readonly containers: readonly ContainerStatus[];
  readonly sandboxes: readonly SandboxStatus[];
  /** `container`: one that stays. */
  readonly stays: readonly { readonly container: ContainerStatus; readonly why: string }[];
}

/**
 * The parts of a pod that are removed when the node needs space. Of a running pod, those that would be removed later
 * anyway; of one that has ended, everything. Pure.
 * @param isOver the pod has ended, and its end is recorded elsewhere
 */
export function unusedParts(status: PodStatus, policy: GarbagePolicy, isOver: boolean, nowMs: number): UnusedParts {
  const isDead = ({ state }: ContainerStatus): boolean => state === "exited" || state === "unknown";
  const containers = isOver ? status.containers.filter(isDead) : containerGarbage(status, policy, nowMs);
  const goes = new Set(containers);
  const left = status.containers.filter((container) => !goes.has(container));
  const used = new Set(left.map(({ sandboxId }) => sandboxId));
  const sandboxes = isOver
    ? status.sandboxes.filter(({ id, ready }) => !ready && !used.has(id))
    : sandboxGarbage({ ...status, containers: left });
  return { containers, sandboxes, stays: left.map((container) => ({ container, why: whyItStays(status, container) })) };
}

function whyItStays({ containers }: PodStatus, container: ContainerStatus): string {
  if (container.state === "running") return "running";
  if (container.state === "created") return "about to start";
  const isNewest = !containers.some(({ name, restartCount }) => {
    return name === container.name && restartCount > container.restartCount;
  });
  return isNewest ? "newest instance of its container" : "one of the last dead instances, or too recent";
}
