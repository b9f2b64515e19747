import { containersOf } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import { isSupportedPodResource, parseList, sumLists, type Quantities } from "./pod-totals.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

/**
 * The pod's quality of service class. Only CPU and memory of regular and init containers count; pod-level resources
 * replace them (KEP-2837).
 */
export function qosClass({ spec }: Pick<Pod, "spec">): QosClass {
  const known = classes.get(spec);
  if (known !== undefined) return known;
  const found = computeClass(spec);
  classes.set(spec, found);
  return found;
}

const classes = new WeakMap<Pod["spec"], QosClass>();

function computeClass(spec: Pod["spec"]): QosClass {
  const parts =
    spec.resources === undefined ? containersOf(spec).map((container) => container.resources) : [spec.resources];
  const requests = sumLists(parts.map((part) => computeResources(part?.requests)));
  const limitLists = parts.map((part) => computeResources(part?.limits));
  const limits = sumLists(limitLists);
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const allLimited = limitLists.every((list) => list.has("cpu") && list.has("memory"));
  const matching = [...requests].every(([name, request]) => limits.get(name)?.compare(request) === 0);
  return allLimited && matching && requests.size === limits.size ? "Guaranteed" : "Burstable";
}

/** CPU and memory, if positive. */
function computeResources(list: Readonly<Record<string, string | number>> | undefined): Quantities {
  const quantities = [...parseList(list)].filter(
    ([name, quantity]) => (name === "cpu" || name === "memory") && quantity.nanos > 0n,
  );
  return new Map(quantities);
}

/** Whether the pod has pod-level resources (KEP-2837). */
export function hasPodLevelResources(pod: Pod): boolean {
  const { requests, limits } = pod.spec.resources ?? {};
  return [requests, limits].some((list) => Object.keys(list ?? {}).some(isSupportedPodResource));
}
