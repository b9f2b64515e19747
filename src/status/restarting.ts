import { containersOf } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import { afterExit } from "../api/restart-policy.ts";
import type { ContainerStateTerminated, PodStatus } from "../api/status.ts";
import { findContainer, type PodStatus as RuntimePodStatus } from "../runtime/status/pod-status.ts";

/** Waiting and last termination reason of a container that was stopped because its whole pod starts over (KEP-5532). */
export const restartingAllContainers = "RestartingAllContainers";
export const restartingMessage = "The container is removed because RestartAllContainers in place";

/** The condition that is True from the exit that asks for it until every container has been removed. */
export const restartingCondition = "AllContainersRestarting";

/** Whether some rule of the pod starts all its containers over: any of them may then run again after any end. */
export function mayRestartAll({ spec }: Pod): boolean {
  return containersOf(spec).some(({ restartPolicyRules = [] }) =>
    restartPolicyRules.some(({ action }) => action === "RestartAllContainers"),
  );
}

/** Whether the pod is being started over, or was when its status was made the last time. */
export function isRestartingAll(pod: Pod, podStatus: RuntimePodStatus, previous: PodStatus | undefined): boolean {
  if (previous?.conditions?.some(({ type, status }) => type === restartingCondition && status === "True")) return true;
  return containersOf(pod.spec).some((container) => {
    const newest = findContainer(podStatus, container.name);
    return newest?.state === "exited" && afterExit(pod, container, newest.exitCode) === "restartAllContainers";
  });
}

/** Nothing is left of what has to go before the pod starts over. Ephemeral containers stay. */
export function areAllRemoved({ spec }: Pod, podStatus: RuntimePodStatus): boolean {
  return containersOf(spec).every(({ name }) => !findContainer(podStatus, name));
}

/** How a container ended that was removed so that its pod starts over. */
export const removedEnd: ContainerStateTerminated = {
  exitCode: 137,
  reason: restartingAllContainers,
  message: restartingMessage,
  startedAt: null,
  finishedAt: null,
};
