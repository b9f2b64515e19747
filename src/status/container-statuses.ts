import { isSidecar } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import { restartingAllContainers, restartsAfter } from "../api/restart-policy.ts";
import type { ContainerState, ContainerStateTerminated, ContainerStatus, VolumeMountStatus } from "../api/status.ts";
import { formatNanoseconds } from "../base/time.ts";
import type { ContainerStatus as RuntimeContainerStatus } from "../runtime/status/pod-status.ts";
import type { StatusInputs, WaitingReason } from "./inputs.ts";
import { isRestartingAll, removedEnd, restartingMessage, wasRestartingAll } from "./restarting.ts";
import { actualResources, allocatedResources } from "./resources.ts";
import { cutTerminationMessage } from "./termination-message.ts";

/** The reason of an unknown exit. */
export const containerStatusUnknown = "ContainerStatusUnknown";
/** Exit code of an unknown exit: as if killed. */
const unknownExitCode = 137;

export type ContainerKind = "init" | "regular" | "ephemeral";

/** The statuses of a pod's containers of one kind. Init containers in spec order, others by name, as upstream. */
export function containerStatuses(
  inputs: StatusInputs,
  kind: ContainerKind,
  containers: readonly Container[],
  previous: readonly ContainerStatus[] | undefined,
): ContainerStatus[] {
  const statuses = containers.map((container) => {
    const before = previous?.find(({ name }) => name === container.name);
    return containerStatus(inputs, kind, container, before);
  });
  return kind === "init" ? statuses : statuses.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function containerStatus(
  inputs: StatusInputs,
  kind: ContainerKind,
  container: Container,
  before: ContainerStatus | undefined,
): ContainerStatus {
  const [newest, older] = inputs.podStatus.containers.filter(({ name }) => name === container.name);
  const base = newest
    ? observedStatus(inputs, container, newest, older, before)
    : missingStatus(inputs, kind, container, before);
  const waiting = withWaitingReason(inputs, kind, container, newest, base);
  return withProbeResults(inputs, kind, container, waiting);
}

/** A container that the runtime does not have: not created yet, or lost with its exit code. */
function missingStatus(
  { pod, podStatus, previous, tried, recursiveReadOnlyMounts }: StatusInputs,
  kind: ContainerKind,
  container: Container,
  before: ContainerStatus | undefined,
): ContainerStatus {
  const isRestarting = wasRestartingAll(previous) || isRestartingAll(pod, podStatus);
  if (before !== undefined && kind !== "ephemeral" && isRestarting) {
    if (before.state.waiting?.reason === restartingAllContainers) return before;
    if (before.state.waiting === undefined) return removedStatus(container, before);
  }
  if (before?.state.terminated) return before;
  const lost = before?.state.running !== undefined && before.lastState.terminated === undefined;
  const lastState = lost
    ? {
        terminated: unknownEnd(
          "The container could not be located when the pod was deleted.  The container used to be Running",
        ),
      }
    : (before?.lastState ?? {});
  const initial = initialWaitingReason(pod.spec.initContainers);
  return {
    name: container.name,
    state: tried.has(container.name) || !isFailedStart(before) ? { waiting: { reason: initial } } : before.state,
    lastState,
    ready: false,
    restartCount: (before?.restartCount ?? 0) + (lost && pod.metadata.deletionTimestamp === undefined ? 1 : 0),
    image: container.image ?? "",
    imageID: "",
    ...volumeMounts(container, recursiveReadOnlyMounts),
  };
}

/** A container that was removed because its pod restarts. */
function removedStatus(container: Container, status: ContainerStatus): ContainerStatus {
  const { containerID: _, ...before } = status;
  return {
    ...before,
    state: { waiting: { reason: restartingAllContainers, message: restartingMessage } },
    lastState: { terminated: removedEnd },
    ready: false,
    restartCount: before.restartCount + 1,
    image: container.image ?? "",
    imageID: "",
  };
}

/** Until its next instance is created. */
const restartingWait: WaitingReason = { reason: "ContainerCreating", message: "" };

/** Reasons that are not the container's own start failure. */
const otherWaits: ReadonlySet<string> = new Set([
  ...["", "ContainerCreating", "PodInitializing", "CreatePodSandboxError", "CrashLoopBackOff", restartingAllContainers],
]);

/** Its start has failed with a reason. */
function isFailedStart(status: ContainerStatus | undefined): status is ContainerStatus {
  return !otherWaits.has(status?.state.waiting?.reason ?? "");
}

function initialWaitingReason(initContainers: readonly Container[] | undefined): string {
  return (initContainers?.length ?? 0) > 0 ? "PodInitializing" : "ContainerCreating";
}

/** A container's newest instance; the previous one is the last state. */
function observedStatus(
  inputs: StatusInputs,
  container: Container,
  newest: RuntimeContainerStatus,
  older: RuntimeContainerStatus | undefined,
  before: ContainerStatus | undefined,
): ContainerStatus {
  const containerID = fullId(inputs, newest);
  const { state, restarted } = currentState(inputs, newest, before);
  return {
    name: container.name,
    state,
    lastState: stateBefore(inputs, containerID, older, before),
    ready: false,
    restartCount: restarted ?? Math.max(newest.restartCount, before?.restartCount ?? 0),
    image: newest.image,
    imageID: newest.imageId,
    containerID,
    ...allocatedResources(container.resources),
    resources: actualResources(container, newest, inputs.resize?.actuated),
    ...volumeMounts(container, inputs.recursiveReadOnlyMounts),
    ...containerUser(newest),
    ...(newest.stopSignal && { stopSignal: newest.stopSignal }),
  };
}

/** `restarted`: the restart count when the runtime does not know of the restart. */
function currentState(
  inputs: StatusInputs,
  newest: RuntimeContainerStatus,
  before: ContainerStatus | undefined,
): { readonly state: ContainerState; readonly restarted?: number } {
  switch (newest.state) {
    case "running": {
      const state = { running: { startedAt: formatNanoseconds(newest.startedAt) } };
      const uncounted = before?.state.terminated !== undefined && before.restartCount >= newest.restartCount;
      return uncounted ? { state, restarted: before.restartCount + 1 } : { state };
    }
    case "exited":
      return { state: { terminated: terminatedState(inputs, newest) } };
    case "unknown":
      // It has run and is gone: "never ran" would run a run-once pod twice.
      if (before?.state.running !== undefined) {
        const terminated = unknownEnd("The container could not be located when the pod was terminated");
        return { state: { terminated }, restarted: before.restartCount + 1 };
      }
      return { state: { waiting: {} } };
    case "created":
      return { state: { waiting: {} } };
  }
}

function stateBefore(
  inputs: StatusInputs,
  containerID: string,
  older: RuntimeContainerStatus | undefined,
  before: ContainerStatus | undefined,
): ContainerState {
  if (older?.state === "exited") return { terminated: terminatedState(inputs, older) };
  // An earlier run has restarted the pod, and could not say so.
  const isNew = before?.containerID !== undefined && before.containerID !== containerID;
  if (isNew && wasRestartingAll(inputs.previous)) return { terminated: removedEnd };
  // The previous instance may be garbage-collected: its reported state stays valid.
  const known = [before?.state.terminated, before?.lastState.terminated];
  const terminated = known.find((end) => end !== undefined && end.containerID !== containerID);
  return terminated === undefined ? {} : { terminated };
}

function terminatedState(inputs: StatusInputs, container: RuntimeContainerStatus): ContainerStateTerminated {
  const left = inputs.terminationMessages.get(container.id) ?? "";
  const message = [container.message, left].filter((part) => part !== "").join(": ");
  return {
    exitCode: container.exitCode,
    ...(container.reason && { reason: container.reason }),
    ...(message && { message: cutTerminationMessage(inputs.pod, message) }),
    startedAt: formatNanoseconds(container.startedAt),
    finishedAt: formatNanoseconds(container.finishedAt),
    containerID: fullId(inputs, container),
  };
}

/** The end of a container that the runtime no longer has. */
export function unknownEnd(message: string): ContainerStateTerminated {
  return {
    exitCode: unknownExitCode,
    reason: containerStatusUnknown,
    message,
    startedAt: null,
    finishedAt: null,
  };
}

/** A container whose start failed waits with the reason of the last attempt. */
function withWaitingReason(
  inputs: StatusInputs,
  kind: ContainerKind,
  container: Container,
  newest: RuntimeContainerStatus | undefined,
  status: ContainerStatus,
): ContainerStatus {
  if (kind === "init" && newest?.state === "exited" && newest.exitCode === 0) return status;
  if (kind === "init" && isForgottenInit(inputs, container, newest, status)) {
    const message =
      "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally";
    const terminated = { exitCode: 0, reason: "Completed", message, startedAt: null, finishedAt: null };
    return { ...status, state: { terminated } };
  }
  // The API server lets no container return from an end that its policy makes final: such a stop is never shown as one.
  const stopped = kind !== "ephemeral" && isRestarted(inputs, container, newest) ? restartingWait : undefined;
  const waiting = inputs.waiting.get(container.name) ?? stopped;
  if (waiting === undefined || !isToRun(inputs, container, newest)) return status;
  const { reason, message } = waiting;
  return {
    ...status,
    lastState: status.state.terminated ? { terminated: status.state.terminated } : status.lastState,
    state: { waiting: { reason, ...(message && { message }) } },
  };
}

/** Gone from the runtime while regular containers exist: it must have completed. */
function isForgottenInit(
  { pod, podStatus }: StatusInputs,
  container: Container,
  newest: RuntimeContainerStatus | undefined,
  status: ContainerStatus,
): boolean {
  const regular = new Set(pod.spec.containers.map(({ name }) => name));
  const created = podStatus.containers.some(({ name, state }) => regular.has(name) && state !== "unknown");
  const { waiting } = status.state;
  const forgotten = waiting !== undefined && waiting.reason !== restartingAllContainers;
  return newest === undefined && created && !isSidecar(container) && forgotten;
}

/**
 * It was stopped to be restarted, or is going to be, because the runtime has lost track of it, and by its exit code alone
 * it would not run again.
 */
export function isRestarted(
  { pod, restarting, podIsTerminal }: Pick<StatusInputs, "pod" | "restarting" | "podIsTerminal">,
  container: Container,
  newest: RuntimeContainerStatus | undefined,
): boolean {
  if (newest?.state === "unknown") return !podIsTerminal && !restartsAfter(pod, container, unknownExitCode);
  if (newest?.state !== "exited" || !restarting.has(newest.id)) return false;
  return !restartsAfter(pod, container, newest.exitCode);
}

function isToRun(inputs: StatusInputs, container: Container, newest: RuntimeContainerStatus | undefined): boolean {
  const { pod } = inputs;
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  if (newest === undefined) return true;
  if (newest.state === "running") return false;
  if (newest.state !== "exited" || restartsAfter(pod, container, newest.exitCode)) return true;
  return isRestarted(inputs, container, newest);
}

/** `started` and `ready`: by the probes, or whether the container runs if it has none. */
function withProbeResults(
  inputs: StatusInputs,
  kind: ContainerKind,
  container: Container,
  status: ContainerStatus,
): ContainerStatus {
  if (kind === "ephemeral") return status;
  const probes = inputs.probes.get(container.name);
  const running = status.state.running !== undefined;
  const started = running && (probes?.started ?? true);
  const ready =
    kind === "init" && !isSidecar(container)
      ? status.state.terminated?.exitCode === 0
      : started && (probes?.ready ?? true);
  return { ...status, ready, started };
}

function fullId({ runtimeName }: StatusInputs, container: RuntimeContainerStatus): string {
  return `${runtimeName}://${container.id}`;
}

function volumeMounts(
  container: Container,
  recursiveReadOnlyMounts: boolean,
): { readonly volumeMounts?: readonly VolumeMountStatus[] } {
  const mounts = (container.volumeMounts ?? []).map((mount): VolumeMountStatus => {
    const { name, mountPath, readOnly, recursiveReadOnly = "Disabled" } = mount;
    if (readOnly !== true) return { name, mountPath };
    const recursive = recursiveReadOnlyMounts && recursiveReadOnly !== "Disabled";
    return { name, mountPath, readOnly, recursiveReadOnly: recursive ? "Enabled" : "Disabled" };
  });
  return mounts.length > 0 ? { volumeMounts: mounts } : {};
}

function containerUser({ user }: RuntimeContainerStatus): Pick<ContainerStatus, "user"> {
  if (user === undefined) return {};
  const groups = user.supplementalGroups.map(Number);
  const linux = { uid: Number(user.uid), gid: Number(user.gid) };
  return { user: { linux: groups.length > 0 ? { ...linux, supplementalGroups: groups } : linux } };
}
