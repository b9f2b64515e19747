import { containersOf } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import { afterExit, restartingAllContainers } from "../api/restart-policy.ts";
import type { ContainerStateTerminated, PodStatus } from "../api/status.ts";
import { findContainer, type PodStatus as RuntimePodStatus } from "../runtime/status/pod-status.ts";

export const restartingMessage = "The container is removed because RestartAllContainers in place";

/** The condition that is True from the exit that requests it until every container has been removed. */
export const restartingCondition = "AllContainersRestarting";

/** Whether a rule of the pod restarts all its containers: any of them may then run again after any exit. */
export function mayRestartAll({ spec }: Pod): boolean {
  return containersOf(spec).some(({ restartPolicyRules = [] }) =>
    restartPolicyRules.some(({ action }) => action === "RestartAllContainers"),
  );
}

/**
 * Whether an exit restarts all containers of the pod. The one that has exited is removed last: the restart is under way
 * for as long as the runtime has it, and cannot be under way without it, whatever an earlier run has reported.
 */
export function isRestartingAll(pod: Pod, podStatus: RuntimePodStatus): boolean {
  return containersOf(pod.spec).some((container) => {
    const newest = findContainer(podStatus, container.name);
    return newest?.state === "exited" && afterExit(pod, container, newest.exitCode) === "restartAllContainers";
  });
}

/** Whether all containers were to be restarted when the pod had this status: what it shows was removed since. */
export function wasRestartingAll(status: PodStatus | undefined): boolean {
  return (
    status?.conditions?.some(({ type, status: value }) => type === restartingCondition && value === "True") === true
  );
}

/** The end of a container that was removed because its pod restarts. */
export const removedEnd: ContainerStateTerminated = {
  exitCode: 137,
  reason: restartingAllContainers,
  message: restartingMessage,
  startedAt: null,
  finishedAt: null,
};
