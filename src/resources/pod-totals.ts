import { isSidecar } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import { parseQuantity, type Quantity } from "./quantity.ts";

/** Quantities by resource name. */
export type Quantities = ReadonlyMap<string, Quantity>;

export interface PodTotalOptions {
  /** Without the runtime class's overhead, which the runtime adds to the sandbox itself. */
  readonly excludeOverhead?: boolean;
}

/** Whether pod-level resources support it (KEP-2837). */
export function isSupportedPodResource(name: string): boolean {
  return name === "cpu" || name === "memory" || name.startsWith("hugepages-");
}

const noQuantities: Quantities = new Map();
/** A manifest's lists are read often and never change. */
const parsedLists = new WeakMap<object, Quantities>();

export function parseList(list: Readonly<Record<string, string | number>> | undefined): Quantities {
  if (list === undefined) return noQuantities;
  const known = parsedLists.get(list);
  if (known !== undefined) return known;
  const parsed = new Map(Object.entries(list).map(([name, text]) => [name, parseQuantity(text)]));
  parsedLists.set(list, parsed);
  return parsed;
}

export function sumLists(lists: readonly Quantities[]): Quantities {
  return combine(lists, (a, b) => a.add(b));
}

function maxLists(lists: readonly Quantities[]): Quantities {
  return combine(lists, (a, b) => (a.compare(b) < 0 ? b : a));
}

function combine(lists: readonly Quantities[], merge: (a: Quantity, b: Quantity) => Quantity): Quantities {
  const result = new Map<string, Quantity>();
  for (const list of lists) {
    for (const [name, quantity] of list) {
      const present = result.get(name);
      result.set(name, present === undefined ? quantity : merge(present, quantity));
    }
  }
  return result;
}

/** Usage by phase of a pod: all regular containers and sidecars, and each init container. */
interface Usage {
  readonly running: Quantities;
  readonly initializing: readonly Quantities[];
}

/**
 * An init container runs beside the sidecars that come before it:
 * `InitContainerUse(i) = sum(sidecars with index < i) + resources of i` (KEP-753).
 */
function usage(pod: Pick<Pod, "spec">, kind: "requests" | "limits"): Usage {
  const sidecars: Quantities[] = [];
  const initializing: Quantities[] = [];
  for (const container of pod.spec.initContainers ?? []) {
    const own = parseList(container.resources?.[kind]);
    initializing.push(sumLists([...sidecars, own]));
    if (isSidecar(container)) sidecars.push(own);
  }
  const regular = pod.spec.containers.map((container) => parseList(container.resources?.[kind]));
  return { running: sumLists([...regular, ...sidecars]), initializing };
}

/** The containers' total request, without pod-level resources and overhead. */
export function containerRequests(pod: Pick<Pod, "spec">): Quantities {
  const { running, initializing } = usage(pod, "requests");
  return maxLists([running, ...initializing]);
}

/** Like {@link containerRequests}, for the limits that are set. */
export function containerLimits(pod: Pick<Pod, "spec">): Quantities {
  const { running, initializing } = usage(pod, "limits");
  return maxLists([running, ...initializing]);
}

/** Each new pod needs the requests of all other pods. */
const requestsBySpec = new WeakMap<Pod["spec"], Quantities>();

/** The pod's total request. */
export function podRequests(pod: Pod, options: PodTotalOptions = {}): Quantities {
  if (options.excludeOverhead) return sumRequests(pod, options);
  const known = requestsBySpec.get(pod.spec);
  if (known !== undefined) return known;
  const requests = sumRequests(pod, options);
  requestsBySpec.set(pod.spec, requests);
  return requests;
}

function sumRequests(pod: Pod, options: PodTotalOptions): Quantities {
  const totals = new Map(containerRequests(pod));
  applyPodLevel(totals, pod.spec.resources?.requests);
  return options.excludeOverhead ? totals : sumLists([totals, parseList(pod.spec.overhead)]);
}

/** The sum of the limits that are set: a container without one can still exceed it. */
export function podLimits(pod: Pod, options: PodTotalOptions = {}): Quantities {
  const totals = new Map(containerLimits(pod));
  applyPodLevel(totals, pod.spec.resources?.limits);
  if (options.excludeOverhead) return totals;
  for (const [name, overhead] of parseList(pod.spec.overhead)) {
    const limit = totals.get(name);
    if (limit !== undefined && !limit.isZero) totals.set(name, limit.add(overhead));
  }
  return totals;
}

function applyPodLevel(
  totals: Map<string, Quantity>,
  list: Readonly<Record<string, string | number>> | undefined,
): void {
  for (const [name, quantity] of parseList(list)) {
    if (isSupportedPodResource(name)) totals.set(name, quantity);
  }
}

/** Whether the pod's total limit is effective: each container or the pod itself has one. */
export function limitIsDeclared(pod: Pod, resource: "cpu" | "memory"): boolean {
  if (parseList(pod.spec.resources?.limits).get(resource)?.isZero === false) return true;
  const regular = pod.spec.containers.map((container) => parseList(container.resources?.limits));
  return [...regular, ...usage(pod, "limits").initializing].every((list) => list.get(resource)?.isZero === false);
}

/** Quantities in the API's notation. */
export function formatList(list: Quantities): Record<string, string> {
  return Object.fromEntries([...list].map(([name, quantity]) => [name, quantity.toString()]));
}
