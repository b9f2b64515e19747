import { isV6, onePerFamily } from "../base/ip.ts";
import { isSidecar } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerStatus, PodPhase, PodStatus } from "../api/status.ts";
import { formatTime } from "../base/time.ts";
import { tellsRejection } from "../pods/rejection.ts";
import { qosClass } from "../resources/qos.ts";
import { findContainer, type PodStatus as RuntimePodStatus } from "../runtime/status/pod-status.ts";
import { podConditions } from "./conditions.ts";
import { containerStatuses, isRestarted } from "./container-statuses.ts";
import { nameTaken } from "./ignored-pods.ts";
import type { Failure, StatusInputs } from "./inputs.ts";
import { podResourceStatus, resizeConditionsOf } from "./resources.ts";
import { getPhase, isTerminalPhase } from "./phase.ts";
import { foreignConditions } from "./merged-conditions.ts";

/**
 * The status of a pod from everything known of it; pure. Unlike upstream's, status.resources shows the allocation
 * instead of the pod's cgroup (which on cgroup v1 has a huge number for "no limit").
 */
export function generateAPIPodStatus(inputs: StatusInputs): PodStatus {
  const { pod, podStatus, previous, now } = inputs;
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const init = containerStatuses(inputs, "init", initContainers, previous?.initContainerStatuses);
  const regular = containerStatuses(inputs, "regular", containers, previous?.containerStatuses);
  const ephemeral = containerStatuses(inputs, "ephemeral", ephemeralContainers, previous?.ephemeralContainerStatuses);
  const decided = nextPhase(inputs, [...init, ...regular]);
  const phase = heldBack(inputs, decided, [...init, ...regular]);
  const isTurned = isTurnedAway(inputs, decided);
  if (isTurned && wasRefused(inputs)) return refusedStatus(inputs, phase);
  const conditions = podConditions({
    pod,
    podStatus,
    // A stopping pod is not ready, however long its containers take.
    phase: decided,
    initStatuses: init,
    containerStatuses: regular,
    previous,
    now,
    resize: resizeConditionsOf(inputs),
    disruption: disruptionOf(inputs, phase),
  });
  return {
    ...observedGeneration(pod),
    phase,
    conditions,
    ...explanation(inputs, phase),
    ...addresses(inputs),
    startTime: startTime(inputs),
    ...(!isTurned && {
      ...(init.length > 0 && { initContainerStatuses: init }),
      ...(regular.length > 0 && { containerStatuses: regular }),
      ...(ephemeral.length > 0 && { ephemeralContainerStatuses: ephemeral }),
    }),
    qosClass: qosClass(pod),
    ...podResourceStatus(pod, inputs.resize?.actuated),
  };
}

/** Also by an earlier run, known only from the status. */
function wasRefused({ failure, previous }: StatusInputs): boolean {
  return failure === undefined ? tellsRejection(previous?.message ?? "") : failure.outcome === "refused";
}

/** As upstream's rejectPod: the node allocated nothing, and reports only the reason. */
function refusedStatus(inputs: StatusInputs, phase: PodPhase): PodStatus {
  const conditions = foreignConditions(inputs.previous);
  return {
    ...observedGeneration(inputs.pod),
    phase,
    ...(conditions.length > 0 && { conditions }),
    ...explanation(inputs, phase),
    startTime: startTime(inputs),
    qosClass: qosClass(inputs.pod),
  };
}

function observedGeneration({ metadata: { generation } }: Pod): Pick<PodStatus, "observedGeneration"> {
  return generation ? { observedGeneration: generation } : {};
}

/** When the node first saw the pod; of a static pod outside of a cluster: when this run did. */
function startTime({ previous, startedAt, now }: StatusInputs): string {
  return previous?.startTime ?? formatTime(startedAt ?? now);
}

/**
 * A pod that ended before the node started anything has no container statuses: otherwise `kubectl get pods` would show
 * what they wait for (ContainerCreating) and not why the pod failed (OutOfcpu).
 */
function isTurnedAway({ podStatus, previous }: StatusInputs, phase: PodPhase): boolean {
  const { sandboxes, containers } = podStatus;
  const wasSeen = sandboxes.length > 0 || containers.length > 0 || previous?.containerStatuses !== undefined;
  return isTerminalPhase(phase) && !wasSeen;
}

/** As upstream, set with the pod's end: until then the pod runs, and others may set a reason. */
function disruptionOf({ failure, previous }: StatusInputs, phase: PodPhase): string | undefined {
  const ends = isTerminalPhase(phase) && !isTerminalPhase(previous?.phase);
  return ends ? failure?.disruption : undefined;
}

/**
 * A final phase is permanent. A running pod is Pending again only while it is reinitialized. Exit codes count, as
 * upstream, if the node cuts a pod short: one that stops in good order has succeeded.
 */
function nextPhase(inputs: StatusInputs, statuses: readonly ContainerStatus[]): PodPhase {
  const { previous, failure, endedPhase } = inputs;
  if (previous !== undefined && isTerminalPhase(previous.phase)) return previous.phase;
  if (endedPhase !== undefined) return endedPhase;
  const found = phaseOfContainers(inputs, statuses);
  if (failure === undefined) return found;
  return failure.outcome === "cutShort" && found === "Succeeded" ? "Succeeded" : "Failed";
}

function phaseOfContainers(inputs: StatusInputs, statuses: readonly ContainerStatus[]): PodPhase {
  const { pod, podStatus, podIsTerminal, isInitialized = hasRegularInSandbox(pod, podStatus) } = inputs;
  const initialized = isInitialized || staysInitialized(inputs, statuses);
  const counted = initialized ? statuses : ofThisBeginning(pod, podStatus, statuses);
  const restarted = pod.spec.containers.filter((container) => {
    return isRestarted(inputs, container, findContainer(podStatus, container.name));
  });
  const restarting = new Set(restarted.map(({ name }) => name));
  return getPhase(pod, { statuses: counted, podIsTerminal, initialized, restarting });
}

/**
 * While init containers run again in a new sandbox, states of containers in the previous sandbox do not affect the
 * phase: upstream's alternates then, with each container that waits for its turn.
 */
function ofThisBeginning(
  { spec }: Pod,
  podStatus: RuntimePodStatus,
  statuses: readonly ContainerStatus[],
): readonly ContainerStatus[] {
  const [newest] = podStatus.sandboxes;
  if (newest?.ready !== true || (spec.initContainers ?? []).length === 0) return statuses;
  return statuses.filter(({ name }) => {
    const instance = findContainer(podStatus, name);
    return instance === undefined || (instance.sandboxId === newest.id && instance.state !== "created");
  });
}

/**
 * The only sign of a Running pod's initialization may be a container that was created and could not be started: until
 * the next attempt nothing shows it but the init containers, which have all had their turn in this sandbox.
 */
function staysInitialized({ pod, podStatus, previous }: StatusInputs, statuses: readonly ContainerStatus[]): boolean {
  const last = pod.spec.initContainers?.at(-1);
  const [newest] = podStatus.sandboxes;
  if (previous?.phase !== "Running" || newest?.ready !== true || last === undefined) return false;
  const instance = findContainer(podStatus, last.name);
  if (instance === undefined || instance.sandboxId !== newest.id) return false;
  if (instance.state === "exited") return isSidecar(last) || instance.exitCode === 0;
  return instance.state === "running" && statuses.some(({ name, started }) => name === last.name && started === true);
}

/** The end of a pod must not be visible before its last container has stopped. */
function heldBack(inputs: StatusInputs, phase: PodPhase, statuses: readonly ContainerStatus[]): PodPhase {
  const { previous, mayRun } = inputs;
  if (mayRun !== true || !isTerminalPhase(phase) || isTerminalPhase(previous?.phase)) return phase;
  if (previous !== undefined) return previous.phase;
  // A run that finds a stopping pod has no earlier status of it: the phase comes from its containers.
  const found = phaseOfContainers(inputs, statuses);
  if (!isTerminalPhase(found)) return found;
  return hasRegularInNewest(inputs.pod, inputs.podStatus) ? "Running" : "Pending";
}

/** The pod is initialized in its current sandbox: a regular container was created in it. */
export function hasRegularInSandbox(pod: Pod, podStatus: RuntimePodStatus): boolean {
  return podStatus.sandboxes[0]?.ready === true && hasRegularInNewest(pod, podStatus);
}

function hasRegularInNewest(pod: Pod, { sandboxes, containers }: RuntimePodStatus): boolean {
  const [newest] = sandboxes;
  const regular = new Set(pod.spec.containers.map(({ name }) => name));
  return containers.some(({ name, sandboxId }) => sandboxId === newest?.id && regular.has(name));
}

/** Reason and message explain the phase, so they stay with it; NameTaken ends once the pod has its name. */
function explanation({ failure, previous }: StatusInputs, phase: PodPhase): Pick<PodStatus, "message" | "reason"> {
  const ended = previous !== undefined && isTerminalPhase(previous.phase);
  const isNews = failure !== undefined && !ended && phase === "Failed";
  const stays = previous?.phase === phase && previous.reason !== nameTaken.reason;
  const { reason, message } = isNews ? wordsOf(failure) : stays ? previous : {};
  return { ...(message && { message }), ...(reason && { reason }) };
}

function wordsOf({ cause: { code, message } }: Failure): Pick<PodStatus, "message" | "reason"> {
  return { reason: code, message };
}

/** The pod's addresses in the order of the node's families; a pod without a sandbox keeps its last ones. */
function addresses(inputs: StatusInputs): Pick<PodStatus, "hostIP" | "hostIPs" | "podIP" | "podIPs"> {
  const { pod, podStatus, hostIPs, previous } = inputs;
  const nodeIPs = hostIPs.slice(0, 2);
  const ready = podStatus.sandboxes.find((sandbox) => sandbox.ready);
  const observed = pod.spec.hostNetwork === true ? hostPodIPs(nodeIPs, previous) : (ready?.ips ?? []);
  const podIPs =
    ready === undefined && observed.length === 0
      ? (previous?.podIPs ?? []).map(({ ip }) => ip)
      : onePerFamily(observed, nodeIPs[0]);
  return {
    ...(nodeIPs[0] !== undefined && { hostIP: nodeIPs[0], hostIPs: nodeIPs.map((ip) => ({ ip })) }),
    ...(podIPs[0] !== undefined && { podIP: podIPs[0], podIPs: podIPs.map((ip) => ({ ip })) }),
  };
}

/** As upstream: a hostNetwork pod keeps its address; a missing family is added. */
function hostPodIPs(nodeIPs: readonly string[], previous: PodStatus | undefined): readonly string[] {
  const had = (previous?.podIPs ?? []).map(({ ip }) => ip);
  const [first, ...more] = had;
  if (first === undefined) return nodeIPs;
  return more.length > 0 ? had : [first, ...nodeIPs.filter((ip) => isV6(ip) !== isV6(first)).slice(0, 1)];
}
