import { containersOf, isSidecar } from "../../api/all-containers.ts";
import type { Container, ResourceRequirements } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { Cause } from "../../journal/entry.ts";
import { milliCpuToShares } from "../../resources/cpu.ts";
import { parseList } from "../../resources/pod-totals.ts";
import { hasPodLevelResources } from "../../resources/qos.ts";
import { milliQuantity, type Quantity, quantityOf, zeroQuantity } from "../../resources/quantity.ts";
import { type ResizableResource, resizableResources } from "../../resources/resizable.ts";
import type { PodResources } from "../../resources/resource-checkpoint.ts";
import { effectiveRequirements } from "../status/actuated.ts";
import { type ContainerStatus, findContainer, type PodStatus } from "../status/pod-status.ts";
import type { ContainerKind, ContainerToKill, ContainerToStart } from "./container-decision.ts";
import type { PodActionsContext } from "./pod-actions-context.ts";

/** CPU in millicores, memory in bytes; 0n: none. */
export interface Amounts {
  readonly cpuRequest: bigint;
  readonly cpuLimit: bigint;
  readonly memoryRequest: bigint;
  readonly memoryLimit: bigint;
}

/** The kernel's minimum quota: smaller ones are equivalent. */
const leastMilliCpuLimit = 10n;

/** A running container whose resources change without a restart. */
export interface ContainerResize {
  readonly container: Container;
  readonly running: ContainerStatus;
  readonly from: Amounts;
  readonly to: Amounts;
}

/** The steps that bring a pod's cgroups to its allocated resources (KEP-1287). */
export interface PodResize {
  readonly updates: readonly ContainerResize[];
  /** Containers whose resizePolicy requires a restart for this change. */
  readonly restarts: readonly { readonly kill: ContainerToKill; readonly start: ContainerToStart }[];
  readonly cause: Cause;
}

/** What a container gets: its own resources, and the pod's limits where it has none (KEP-2837). */
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

/**
 * Running containers whose resources differ from the allocation. Without a record the runtime's values count, if it
 * reports them.
 */
function unequal(pod: Pod, status: PodStatus, actuated: PodResources | undefined): ContainerResize[] {
  return containersOf(pod.spec).flatMap((container) => {
    const running = findContainer(status, container.name);
    if (running?.state !== "running") return [];
    const given = actuated?.containers.get(container.name);
    const to = amountsOf(container, pod.spec.resources);
    const from = given === undefined ? reportedAmounts(running, to) : amountsOf({ resources: given }, actuated?.pod);
    return from === undefined || sameAmounts(from, to) ? [] : [{ container, running, from, to }];
  });
}

/** The runtime's values for a container; the allocated ones where both are equivalent in the kernel. */
export function reportedAmounts(
  { resources: reported }: Pick<ContainerStatus, "resources">,
  to: Amounts,
): Amounts | undefined {
  if (reported === undefined) return undefined;
  const { cpuRequest = 0n, cpuLimit = 0n, memoryLimit = 0n } = reported;
  // A container without a request has the CPU weight of its limit.
  const weight = milliCpuToShares(to.cpuRequest === 0n ? to.cpuLimit : to.cpuRequest);
  return {
    cpuRequest: milliCpuToShares(cpuRequest) === weight ? to.cpuRequest : cpuRequest,
    cpuLimit: cpuLimit <= leastMilliCpuLimit && to.cpuLimit <= leastMilliCpuLimit ? to.cpuLimit : cpuLimit,
    memoryRequest: to.memoryRequest,
    memoryLimit,
  };
}

/**
 * The record, corrected by the runtime's values of running containers: used when it is unknown whether the last change
 * was carried out.
 */
export function asReported(recorded: PodResources, status: PodStatus): PodResources {
  const containers = [...recorded.containers].map(([name, given]) => {
    const running = findContainer(status, name);
    return [name, running?.state === "running" ? requirementsAsReported(given, recorded.pod, running) : given] as const;
  });
  return { ...recorded, containers: new Map(containers) };
}

/** One container's record, corrected by the runtime's values; unchanged if equivalent. */
export function requirementsAsReported(
  given: ResourceRequirements,
  podResources: Pod["spec"]["resources"],
  container: Pick<ContainerStatus, "resources">,
): ResourceRequirements {
  const had = amountsOf({ resources: given }, podResources);
  const reported = reportedAmounts(container, had);
  return reported === undefined || sameAmounts(had, reported) ? given : withReported(given, had, reported);
}

/**
 * The record, with those allocated changes that the runtime shows as done. Its other values (rounded to pages, adjusted
 * by others, missing memory requests) change nothing.
 */
export function withCarriedOut(recorded: PodResources, status: PodStatus, granted: Pod): PodResources {
  const all = containersOf(granted.spec);
  const containers = [...recorded.containers].map(([name, given]) => {
    const running = findContainer(status, name);
    const container = all.find((each) => each.name === name);
    if (running?.state !== "running" || container === undefined) return [name, given] as const;
    const had = amountsOf({ resources: given }, recorded.pod);
    const to = amountsOf(container, granted.spec.resources);
    const reported = reportedAmounts(running, to);
    const isDone = (resource: ResizableResource): boolean => {
      if (reported === undefined || !changes(resource, had, to) || changes(resource, reported, to)) return false;
      return resource === "cpu" || had.memoryLimit !== to.memoryLimit;
    };
    const done = resizableResources.filter(isDone);
    return [name, withResourcesOf(given, effectiveRequirements(container, granted.spec.resources), done)] as const;
  });
  return { ...recorded, containers: new Map(containers) };
}

function withResourcesOf(
  given: ResourceRequirements,
  granted: ResourceRequirements,
  names: readonly ResizableResource[],
): ResourceRequirements {
  if (names.length === 0) return given;
  const list = (from: "limits" | "requests"): NonNullable<ResourceRequirements["limits"]> => {
    const isKept = ([name]: readonly [string, unknown]): boolean => !names.some((each) => each === name);
    const kept = Object.entries(given[from] ?? {}).filter(isKept);
    const taken = Object.entries(granted[from] ?? {}).filter((entry) => !isKept(entry));
    return Object.fromEntries([...kept, ...taken]);
  };
  return { ...given, limits: list("limits"), requests: list("requests") };
}

/** What the runtime does not report stays as recorded. */
function withReported(
  { limits, requests }: ResourceRequirements,
  had: Amounts,
  reported: Amounts,
): ResourceRequirements {
  const differs = (name: keyof Amounts): boolean => reported[name] > 0n && reported[name] !== had[name];
  return {
    limits: {
      ...limits,
      ...(differs("cpuLimit") && { cpu: milliQuantity(reported.cpuLimit).toString() }),
      ...(differs("memoryLimit") && { memory: quantityOf(reported.memoryLimit, "BinarySI").toString() }),
    },
    requests: { ...requests, ...(differs("cpuRequest") && { cpu: milliQuantity(reported.cpuRequest).toString() }) },
  };
}

interface Compared {
  readonly status: PodStatus;
  readonly actuated: PodResources | undefined;
  readonly differs: boolean;
}

/** All three are immutable, and compared again and again while nothing changes. */
const lastCompared = new WeakMap<Pod, Compared>();

/**
 * True while actuated and allocated resources differ: condition PodResizeInProgress. Containers that are not running
 * get theirs when they start.
 */
export function isResizing(pod: Pod, status: PodStatus, actuated: PodResources | undefined): boolean {
  const last = lastCompared.get(pod);
  if (last?.status === status && last.actuated === actuated) return last.differs;
  const differs = unequal(pod, status, actuated).length > 0 || podLevelChanged(pod, actuated);
  lastCompared.set(pod, { status, actuated, differs });
  return differs;
}

/**
 * The resize steps that are due (upstream: computePodResizeAction); undefined: none. Pure.
 * @param decided containers with another decision
 */
export function decideResize(
  pod: Pod,
  status: PodStatus,
  context: Pick<PodActionsContext, "nowMs" | "busy" | "resize">,
  decided: ReadonlySet<string>,
): PodResize | undefined {
  const { resize: facts, nowMs, busy } = context;
  if (facts === undefined || facts.underWay || (facts.retryAtMs ?? 0) > nowMs) return undefined;
  // A container whose start is in progress has its resources already: its pod cannot be given less before it runs.
  if (busy.size > 0) return undefined;
  const { cause, actuated } = facts;
  // No restart for unrecorded values.
  const restartsFor = (change: ContainerResize): boolean =>
    needsRestart(change) && actuated?.containers.has(change.container.name) === true;
  const unmet = unequal(pod, status, actuated).filter(({ container: { name } }) => !decided.has(name));
  if (unmet.length === 0 && !podLevelChanged(pod, actuated)) return undefined;
  const restarts = unmet.filter(restartsFor).map(({ container, running }) => ({
    kill: {
      container: running,
      cause,
      restarts: true,
      eventMessage: `Container ${container.name} resize requires restart`,
    },
    start: {
      container,
      kind: kindOf(pod, container),
      attempt: running.restartCount + 1,
      restart: true,
      leftover: undefined,
      cause,
    },
  }));
  return { updates: unmet.filter((change) => !restartsFor(change)), restarts, cause };
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

export function sameAmounts(a: Amounts, b: Amounts): boolean {
  return !resizableResources.some((name) => changes(name, a, b));
}

function podLevelChanged(pod: Pod, actuated: PodResources | undefined): boolean {
  if (!hasPodLevelResources(pod) || actuated?.pod === undefined) return false;
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
