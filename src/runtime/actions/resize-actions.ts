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

/** CPU in thousandths, memory in bytes; 0n: none. */
export interface Amounts {
  readonly cpuRequest: bigint;
  readonly cpuLimit: bigint;
  readonly memoryRequest: bigint;
  readonly memoryLimit: bigint;
}

/** The kernel has no smaller quota: those below are all the same. */
const leastMilliCpuLimit = 10n;

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

/**
 * Running containers whose resources are not yet those that they were granted. Where the record is lost, the runtime's
 * word counts, where it gives it.
 */
function unequal(pod: Pod, status: PodStatus, actuated: PodResources | undefined): ContainerResize[] {
  return containersOf(pod.spec).flatMap((container) => {
    const running = findContainer(status, container.name);
    if (running?.state !== "running") return [];
    const given = actuated?.containers.get(container.name);
    const to = amountsOf(container, pod.spec.resources);
    const from = given === undefined ? toldAmounts(running, to) : amountsOf({ resources: given }, actuated?.pod);
    return from === undefined || sameAmounts(from, to) ? [] : [{ container, running, from, to }];
  });
}

/** What the runtime says that a container has; as much as it was granted where that comes to the same in the kernel. */
export function toldAmounts({ resources: told }: Pick<ContainerStatus, "resources">, to: Amounts): Amounts | undefined {
  if (told === undefined) return undefined;
  const { cpuRequest = 0n, cpuLimit = 0n, memoryLimit = 0n } = told;
  // A container without a request weighs as much as its limit says.
  const weight = milliCpuToShares(to.cpuRequest === 0n ? to.cpuLimit : to.cpuRequest);
  return {
    cpuRequest: milliCpuToShares(cpuRequest) === weight ? to.cpuRequest : cpuRequest,
    cpuLimit: cpuLimit <= leastMilliCpuLimit && to.cpuLimit <= leastMilliCpuLimit ? to.cpuLimit : cpuLimit,
    memoryRequest: to.memoryRequest,
    memoryLimit,
  };
}

/**
 * What was recorded, put right by what the runtime says of the containers that run: for when nobody knows whether the
 * last change was carried out.
 */
export function asTold(recorded: PodResources, status: PodStatus): PodResources {
  const containers = [...recorded.containers].map(([name, given]) => {
    const running = findContainer(status, name);
    return [name, running?.state === "running" ? requirementsAsTold(given, recorded.pod, running) : given] as const;
  });
  return { ...recorded, containers: new Map(containers) };
}

/** What one container was given, put right by what the runtime says of it; the same where that says the same. */
export function requirementsAsTold(
  given: ResourceRequirements,
  podResources: Pod["spec"]["resources"],
  container: Pick<ContainerStatus, "resources">,
): ResourceRequirements {
  const had = amountsOf({ resources: given }, podResources);
  const told = toldAmounts(container, had);
  return told === undefined || sameAmounts(had, told) ? given : withTold(given, had, told);
}

/**
 * What was recorded, with those changes to what was granted that the runtime shows to be carried out. Whatever else it
 * says (rounded to pages, adjusted by others, not known of requests for memory) changes nothing.
 */
export function withCarriedOut(recorded: PodResources, status: PodStatus, granted: Pod): PodResources {
  const all = containersOf(granted.spec);
  const containers = [...recorded.containers].map(([name, given]) => {
    const running = findContainer(status, name);
    const container = all.find((each) => each.name === name);
    if (running?.state !== "running" || container === undefined) return [name, given] as const;
    const had = amountsOf({ resources: given }, recorded.pod);
    const to = amountsOf(container, granted.spec.resources);
    const told = toldAmounts(running, to);
    const isDone = (resource: ResizableResource): boolean => {
      if (told === undefined || !changes(resource, had, to) || changes(resource, told, to)) return false;
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

/** What the runtime does not tell is as it was recorded. */
function withTold({ limits, requests }: ResourceRequirements, had: Amounts, told: Amounts): ResourceRequirements {
  const differs = (name: keyof Amounts): boolean => told[name] > 0n && told[name] !== had[name];
  return {
    limits: {
      ...limits,
      ...(differs("cpuLimit") && { cpu: milliQuantity(told.cpuLimit).toString() }),
      ...(differs("memoryLimit") && { memory: quantityOf(told.memoryLimit, "BinarySI").toString() }),
    },
    requests: { ...requests, ...(differs("cpuRequest") && { cpu: milliQuantity(told.cpuRequest).toString() }) },
  };
}

/**
 * True while something of the pod has other resources than it was granted: condition PodResizeInProgress. What does not
 * run gets them when it starts.
 */
export function isResizing(pod: Pod, status: PodStatus, actuated: PodResources | undefined): boolean {
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
  if (facts === undefined || facts.underWay || (facts.retryAtMs ?? 0) > nowMs) return undefined;
  // One that is on its way to run has what it was given: its pod can't be given less before it is, too.
  if (busy.size > 0) return undefined;
  const { cause, actuated } = facts;
  // Nothing is restarted for what nobody recorded.
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
