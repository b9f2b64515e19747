import { isSidecar, lastingContainers } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { ConditionStatus, ContainerStatus, PodCondition, PodPhase, PodStatus } from "../api/status.ts";
import { formatTime } from "../base/time.ts";
import { resizeConditions } from "./resources.ts";
import type { PodStatus as RuntimePodStatus } from "../runtime/status/pod-status.ts";
import { isRestartingAll, mayRestartAll, restartingCondition } from "./restarting.ts";

export interface ConditionInputs {
  readonly pod: Pod;
  readonly podStatus: RuntimePodStatus;
  readonly phase: PodPhase;
  readonly initStatuses: readonly ContainerStatus[];
  readonly containerStatuses: readonly ContainerStatus[];
  readonly previous: PodStatus | undefined;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /** Conditions of a resize, complete. */
  readonly resize?: readonly PodCondition[];
  /** The node's DisruptionTarget message; undefined: none, or already set. */
  readonly disruption?: string | undefined;
}

const disruptionTarget = "DisruptionTarget";
/** Others that disrupt pods use other reasons. */
const disruptionByNode = "TerminationByKubelet";

/** The kubelet's condition types; conditions of other types are kept as they are. */
export const ownConditions: ReadonlySet<string> = new Set([
  ...resizeConditions,
  "PodReadyToStartContainers",
  "Initialized",
  "Ready",
  "ContainersReady",
  "PodScheduled",
  restartingCondition,
]);

/** Whether the condition is the node's own disruption. Pure. */
export function isOwnDisruption({ type, reason }: PodCondition): boolean {
  return type === disruptionTarget && reason === disruptionByNode;
}

/** Conditions with one replaced by type, or appended. Pure. */
export function withCondition(conditions: readonly PodCondition[], added: PodCondition): PodCondition[] {
  const index = conditions.findIndex(({ type }) => type === added.type);
  return index < 0 ? [...conditions, added] : conditions.with(index, added);
}

interface Finding {
  readonly status: ConditionStatus;
  readonly reason?: string;
  readonly message?: string;
}

/**
 * The pod's conditions in upstream's order: those of others, PodReadyToStartContainers, Initialized, Ready,
 * ContainersReady, PodScheduled and, where a rule may restart all containers, AllContainersRestarting. The transition
 * time stays while the status does.
 */
export function podConditions(inputs: ConditionInputs): PodCondition[] {
  const others = (inputs.previous?.conditions ?? []).filter(({ type }) => !ownConditions.has(type));
  // Others disrupt pods through the same condition: it is theirs unless the node itself set it.
  const foreign =
    inputs.disruption === undefined ? others : withCondition(others, disrupted(inputs.disruption, inputs));
  const containersReady = findContainersReady(inputs);
  const own: (readonly [string, Finding])[] = [
    ["PodReadyToStartContainers", { status: hasUsableSandbox(inputs.pod, inputs.podStatus) ? "True" : "False" }],
    ["Initialized", findInitialized(inputs)],
    ["Ready", findReady(inputs, foreign, containersReady)],
    ["ContainersReady", containersReady],
    ["PodScheduled", { status: "True" }],
    ...(mayRestartAll(inputs.pod) ? ([[restartingCondition, findRestarting(inputs)]] as const) : []),
  ];
  return [...foreign, ...(inputs.resize ?? []), ...own.map(([type, finding]) => condition(type, finding, inputs))];
}

/** True when containers can start in the pod's newest sandbox. */
export function hasUsableSandbox(pod: Pod, { sandboxes }: RuntimePodStatus): boolean {
  const [newest] = sandboxes;
  const hostNetwork = pod.spec.hostNetwork === true;
  return (
    newest?.ready === true &&
    sandboxes.filter(({ ready }) => ready).length === 1 &&
    newest.hostNetwork === hostNetwork &&
    (hostNetwork || newest.ips.length > 0)
  );
}

function disrupted(message: string, inputs: ConditionInputs): PodCondition {
  return condition(disruptionTarget, { status: "True", reason: disruptionByNode, message }, inputs);
}

function condition(type: string, { status, reason, message }: Finding, inputs: ConditionInputs): PodCondition {
  const before = inputs.previous?.conditions?.find((other) => other.type === type);
  const { generation } = inputs.pod.metadata;
  return {
    type,
    ...(generation ? { observedGeneration: generation } : {}),
    status,
    lastProbeTime: null,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : formatTime(inputs.now),
    ...(reason && { reason }),
    ...(message && { message }),
  };
}

function findInitialized({ pod, phase, initStatuses, containerStatuses, previous }: ConditionInputs): Finding {
  const initContainers = pod.spec.initContainers ?? [];
  const { unknown, unmet } = judge(initContainers, initStatuses, (container, status) =>
    isSidecar(container) ? status.started === true : status.ready,
  );
  if (phase === "Succeeded" && unknown.length === 0) return { status: "True", reason: "PodCompleted" };
  // A regular container has run: a restarting sidecar does not change that.
  if (containerStatuses.some(({ state }) => state.running ?? state.terminated)) return { status: "True" };
  const message = describe(unknown, unmet, "incomplete");
  if (message === "") return { status: "True" };
  if (previous?.conditions?.some(({ type, status }) => type === "Initialized" && status === "True")) {
    return { status: "True" };
  }
  return { status: "False", reason: "ContainersNotInitialized", message };
}

function findContainersReady({ pod, phase, initStatuses, containerStatuses }: ConditionInputs): Finding {
  const counted = lastingContainers(pod.spec);
  const { unknown, unmet } = judge(counted, [...initStatuses, ...containerStatuses], (_, status) => status.ready);
  if (phase === "Failed") return { status: "False", reason: "PodFailed" };
  if (phase === "Succeeded" && unknown.length === 0) return { status: "False", reason: "PodCompleted" };
  const message = describe(unknown, unmet, "unready");
  return message === "" ? { status: "True" } : { status: "False", reason: "ContainersNotReady", message };
}

/** AllContainersRestarting (KEP-5532). */
function findRestarting({ pod, podStatus, phase }: ConditionInputs): Finding {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" };
  if (phase === "Failed") return { status: "False", reason: "PodFailed" };
  if (!isRestartingAll(pod, podStatus)) return { status: "False" };
  const message = "container exited with restart policy rule";
  return { status: "True", reason: "RestartAllContainersStarted", message };
}

/** Ready: the containers are, and all readiness gates are open (KEP-580). */
function findReady({ pod }: ConditionInputs, foreign: readonly PodCondition[], containersReady: Finding): Finding {
  if (containersReady.status !== "True") return containersReady;
  const problems = (pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const gate = foreign.find(({ type }) => type === conditionType);
    if (gate === undefined) {
      return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    }
    if (gate.status === "True") return [];
    return [`the status of pod readiness gate "${conditionType}" is not "True", but ${gate.status}`];
  });
  if (problems.length === 0) return { status: "True" };
  return { status: "False", reason: "ReadinessGatesNotReady", message: problems.join(", ") };
}

function judge(
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
  isMet: (container: Container, status: ContainerStatus) => boolean,
): { readonly unknown: string[]; readonly unmet: string[] } {
  const unknown: string[] = [];
  const unmet: string[] = [];
  for (const container of containers) {
    const status = statuses.find(({ name }) => name === container.name);
    if (status === undefined) unknown.push(container.name);
    else if (!isMet(container, status)) unmet.push(container.name);
  }
  return { unknown, unmet };
}

function describe(unknown: readonly string[], unmet: readonly string[], word: string): string {
  const parts = [
    unknown.length > 0 ? `containers with unknown status: [${unknown.join(" ")}]` : "",
    unmet.length > 0 ? `containers with ${word} status: [${unmet.join(" ")}]` : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}
