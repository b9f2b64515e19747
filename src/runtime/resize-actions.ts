import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { isSidecar, parseList } from "../resources/pod-totals.ts";
import { hasPodLevelResources } from "../resources/qos.ts";
import { milliQuantity, type Quantity, quantityOf, zeroQuantity } from "../resources/quantity.ts";
import { type ResizableResource, resizableResources } from "../resources/resizable.ts";
import type { PodResources } from "../resources/resource-checkpoint.ts";
import { type ContainerStatus, findContainer, type PodStatus } from "./pod-status.ts";
import type { ContainerKind, ContainerToKill, ContainerToStart } from "./container-decision.ts";
import type { PodActionsContext } from "./pod-actions-context.ts";

/** CPU in thousandths, memory in bytes; 0n: none. */
export interface Amounts {
  readonly cpuRequest: bigint;
  readonly cpuLimit: bigint;
  readonly memoryRequest: bigint;
  readonly memoryLimit: bigint;
}

/** A running container that gets other resources without a restart. */
export interface ContainerResize {
  readonly container: Container;
  readonly running: ContainerStatus;
  readonly from: Amounts;
  readonly to: Amounts;
}

/** What brings a pod's cgroups to the resources that it was granted (KEP-1287). */
export interface PodResize {
  readonly updates: readonly ContainerResize[];
  /** Containers whose resizePolicy wants a restart for what changes. */
  readonly restarts: readonly { readonly kill: ContainerToKill; readonly start: ContainerToStart }[];
  readonly cause: Cause;
}

/** What a container is given: its own resources, and the pod's limits where it has none (KEP-2837). */
export function amountsOf(container: Pick<Container, "resources">, podResources: Pod["spec"]["resources"]): Amounts {
  const requests = parseList(container.resources?.requests);
  const limits = parseList(container.resources?.limits);
  const podLimits = parseList(podResources?.limits);
  const limit = (name: "cpu" | "memory"): Quantity => {
    const own = limits.get(name) ?? zeroQuantity;
    return own.isZero ? (podLimits.get(name) ?? zeroQuantity) : own;
  };
  return {
    cpuRequest: requests.get("cpu")?.milliValue() ?? 0n,
    cpuLimit: limit("cpu").milliValue(),
    memoryRequest: requests.get("memory")?.value() ?? 0n,
    memoryLimit: limit("memory").value(),
  };
}

/** Running containers whose resources are not yet those that they were granted. */
function unequal(pod: Pod, status: PodStatus, actuated: PodResources): ContainerResize[] {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers].flatMap((container) => {
    const running = findContainer(status, container.name);
    const given = actuated.containers.get(container.name);
    if (running?.state !== "running" || given === undefined) return [];
    const from = amountsOf({ resources: given }, actuated.pod);
    const to = amountsOf(container, pod.spec.resources);
    return sameAmounts(from, to) ? [] : [{ container, running, from, to }];
  });
}

/**
 * True while something of the pod has other resources than it was granted: condition PodResizeInProgress. What does not
 * run gets them when it starts.
 */
export function isResizing(pod: Pod, status: PodStatus, actuated: PodResources | undefined): boolean {
  if (actuated === undefined) return false;
  return unequal(pod, status, actuated).length > 0 || podLevelChanged(pod, actuated);
}

/**
 * What of a pod's resources is to be changed now (upstream: computePodResizeAction); undefined: nothing. Pure.
 * @param decided containers about which something else was decided
 */
export function decideResize(
  pod: Pod,
  status: PodStatus,
  context: Pick<PodActionsContext, "nowMs" | "busy" | "resize">,
  decided: ReadonlySet<string>,
): PodResize | undefined {
  const { resize: facts, nowMs, busy } = context;
  if (facts?.actuated === undefined || facts.underWay || (facts.retryAtMs ?? 0) > nowMs) return undefined;
  const { cause } = facts;
  const unmet = unequal(pod, status, facts.actuated).filter(
    ({ container: { name } }) => !busy.has(name) && !decided.has(name),
  );
  if (unmet.length === 0 && !podLevelChanged(pod, facts.actuated)) return undefined;
  const restarts = unmet.filter(needsRestart).map(({ container, running }) => ({
    kill: { container: running, cause, restarts: true },
    start: {
      container,
      kind: kindOf(pod, container),
      attempt: running.restartCount + 1,
      restart: true,
      leftover: undefined,
      cause,
    },
  }));
  return { updates: unmet.filter((change) => !needsRestart(change)), restarts, cause };
}

function kindOf(pod: Pod, container: Container): ContainerKind {
  if (pod.spec.containers.includes(container)) return "regular";
  return isSidecar(container) ? "sidecar" : "init";
}

/** By resizePolicy; the default of both resources is NotRequired. */
function needsRestart({ container, from, to }: ContainerResize): boolean {
  const restartsFor = (name: string): boolean =>
    container.resizePolicy?.some(
      (policy) => policy.resourceName === name && policy.restartPolicy === "RestartContainer",
    ) ?? false;
  return resizableResources.some((name) => changes(name, from, to) && restartsFor(name));
}

/** Whether one of the two resources changes. */
export function changes(name: ResizableResource, from: Amounts, to: Amounts): boolean {
  return name === "cpu"
    ? from.cpuRequest !== to.cpuRequest || from.cpuLimit !== to.cpuLimit
    : from.memoryRequest !== to.memoryRequest || from.memoryLimit !== to.memoryLimit;
}

function sameAmounts(a: Amounts, b: Amounts): boolean {
  return !resizableResources.some((name) => changes(name, a, b));
}

function podLevelChanged(pod: Pod, actuated: PodResources): boolean {
  if (!hasPodLevelResources(pod) || actuated.pod === undefined) return false;
  return !sameAmounts(
    amountsOf({ resources: actuated.pod }, undefined),
    amountsOf({ resources: pod.spec.resources }, undefined),
  );
}

/** `cpu request 50m → 100m, memory limit 64Mi → 128Mi`: what changes, for people. */
export function describeResize({ from, to }: Pick<ContainerResize, "from" | "to">, only?: ResizableResource): string {
  const part = (name: string, before: bigint, after: bigint, format: (amount: bigint) => Quantity): string[] => {
    const text = (amount: bigint): string => (amount === 0n ? "none" : format(amount).toString());
    return before === after ? [] : [`${name} ${text(before)} → ${text(after)}`];
  };
  const bytes = (amount: bigint): Quantity => quantityOf(amount, "BinarySI");
  const parts = {
    cpu: [
      ...part("cpu request", from.cpuRequest, to.cpuRequest, milliQuantity),
      ...part("cpu limit", from.cpuLimit, to.cpuLimit, milliQuantity),
    ],
    memory: [
      ...part("memory request", from.memoryRequest, to.memoryRequest, bytes),
      ...part("memory limit", from.memoryLimit, to.memoryLimit, bytes),
    ],
  };
  return (only === undefined ? [...parts.cpu, ...parts.memory] : parts[only]).join(", ");
}
