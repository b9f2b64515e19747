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

/** Whether the pod is restarting, or was in its last status. */
export function isRestartingAll(pod: Pod, podStatus: RuntimePodStatus, previous: PodStatus | undefined): boolean {
  if (previous?.conditions?.some(({ type, status }) => type === restartingCondition && status === "True")) return true;
  return containersOf(pod.spec).some((container) => {
    const newest = findContainer(podStatus, container.name);
    return newest?.state === "exited" && afterExit(pod, container, newest.exitCode) === "restartAllContainers";
  });
}

/** Everything that must be removed before the pod restarts is gone. Ephemeral containers stay. */
export function areAllRemoved({ spec }: Pod, podStatus: RuntimePodStatus): boolean {
  return containersOf(spec).every(({ name }) => !findContainer(podStatus, name));
}

/** The end of a container that was removed because its pod restarts. */
export const removedEnd: ContainerStateTerminated = {
  exitCode: 137,
  reason: restartingAllContainers,
  message: restartingMessage,
  startedAt: null,
  finishedAt: null,
};
