import { containersOf, isSidecar } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import { neverRestarts, restartsAfter } from "../api/restart-policy.ts";
import type { ContainerStatus, PodPhase, PodStatus } from "../api/status.ts";
import { unknownEnd } from "./container-statuses.ts";
import { getPhase, isTerminalPhase } from "./phase.ts";
import { mayRestartAll } from "./restarting.ts";

/**
 * Why a status transition is illegal: a container that has terminated for good does not run or wait again, unless its
 * whole pod restarts. That is a defect in an observation or decision, and never shown. Undefined when legal.
 */
export function illegalTransition(pod: Pod, before: PodStatus | undefined, after: PodStatus): string | undefined {
  if (mayRestartAll(pod)) return undefined;
  const { containers, initContainers = [] } = pod.spec;
  const regular = firstRevived(pod, containers, before?.containerStatuses, after.containerStatuses);
  // In a new sandbox (after a reboot, or a sandbox that died) they run again, unless nothing of the pod does.
  const init = neverRestarts(pod)
    ? firstRevived(pod, initContainers, before?.initContainerStatuses, after.initContainerStatuses)
    : undefined;
  const revived = regular ?? init;
  return revived && `terminated container ${revived} attempted illegal transition to non-terminated state`;
}

function firstRevived(
  pod: Pod,
  containers: readonly Container[],
  before: readonly ContainerStatus[] = [],
  after: readonly ContainerStatus[] = [],
): string | undefined {
  return containers.find((container) => {
    const last = before.find(({ name }) => name === container.name);
    const exitCode = last?.state.terminated?.exitCode;
    if (exitCode === undefined || restartsAfter(pod, container, exitCode)) return false;
    const now = after.find(({ name }) => name === container.name);
    if (now === undefined || last === undefined || now.state.terminated !== undefined) return false;
    // A container that was stopped for a new image or a resize restarts, whatever its policy says.
    return now.image === last.image && !resizes(container) && !isAnew(last, now);
  })?.name;
}

/**
 * Whether a status reports an end that the server never allows to be revoked: of a container that its pod does not
 * restart (upstream's ValidateContainerStateTransition), and that runs or waits now. Pure.
 */
export function showsEarlierLife(pod: Pod, shown: PodStatus | undefined, now: PodStatus): boolean {
  if (mayRestartAll(pod)) return false;
  return containersOf(pod.spec).some((container) => {
    const exitCode = stateOf(shown, container)?.terminated?.exitCode;
    const state = stateOf(now, container);
    if (exitCode === undefined || state === undefined || state.terminated !== undefined) return false;
    return !restartsAfter(pod, container, exitCode);
  });
}

function stateOf(status: PodStatus | undefined, { name }: Container): ContainerStatus["state"] | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find((each) => each.name === name)?.state;
}

/** The node has created another instance since, e.g. because the runtime had lost it: that is reported. */
function isAnew(last: ContainerStatus, now: ContainerStatus): boolean {
  return [last, now].every(({ containerID }) => containerID !== undefined) && now.containerID !== last.containerID;
}

function resizes({ resizePolicy }: Container): boolean {
  return resizePolicy?.some(({ restartPolicy }) => restartPolicy === "RestartContainer") === true;
}

/**
 * The last status of a pod that has stopped for good (upstream's TerminatePod): containers without an observed end are
 * assumed killed, even if they never ran, and the pod ends.
 */
export function terminatedStatus(pod: Pod, status: PodStatus): PodStatus {
  const init = status.initContainerStatuses ?? [];
  const lastBegun = init.findLastIndex(hasBegun);
  const ended: PodStatus = {
    ...status,
    // Containers that never had their turn keep waiting; if none had, it was the first one's.
    ...(init.length > 0 && {
      initContainerStatuses: init.map((each, index) => (index <= Math.max(lastBegun, 0) ? withEnd(each) : each)),
    }),
    ...(status.containerStatuses && {
      containerStatuses: wasInitialized(pod, status) ? status.containerStatuses.map(withEnd) : status.containerStatuses,
    }),
  };
  return { ...ended, phase: isTerminalPhase(status.phase) ? status.phase : lastPhase(pod, ended) };
}

/**
 * A static pod has ended only if its containers say so. They do immediately: an earlier run may have reported it
 * already.
 */
function lastPhase(pod: Pod, ended: PodStatus): PodPhase {
  if (!isStaticPod(pod)) return "Failed";
  const statuses = [...(ended.initContainerStatuses ?? []), ...(ended.containerStatuses ?? [])];
  const phase = getPhase(pod, { statuses, podIsTerminal: true, initialized: false });
  return phase === "Pending" ? ended.phase : phase;
}

function withEnd(status: ContainerStatus): ContainerStatus {
  if (status.state.terminated) return status;
  const message = "The container could not be located when the pod was terminated";
  return { ...status, state: { terminated: unknownEnd(message) }, ready: false, started: false };
}

function hasBegun({ state, lastState }: ContainerStatus): boolean {
  return state.waiting === undefined || lastState.terminated !== undefined;
}

/** Whether regular containers can have run. */
function wasInitialized(pod: Pod, { containerStatuses = [], initContainerStatuses = [] }: PodStatus): boolean {
  const lastInit = pod.spec.initContainers?.at(-1);
  if (lastInit === undefined || containerStatuses.some(hasBegun)) return true;
  const status = initContainerStatuses.at(-1);
  if (isSidecar(lastInit)) return status?.state.running !== undefined && status.started === true;
  return [status?.state.terminated, status?.lastState.terminated].some((end) => end?.exitCode === 0);
}
