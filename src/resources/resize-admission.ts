import type { Pod } from "../api/pod.ts";
import type { ResourceSettings } from "./container-resources.ts";
import { changesSwap, type SwapSettings } from "./swap.ts";
import { podRequests } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";
import { parseQuantity, zeroQuantity, type Quantity } from "./quantity.ts";
import { resizableResources, type ResizableResource, resizeProblems } from "./resizable.ts";

/** Why a resize waits. Deferred: it may be granted later. Infeasible: never on this node. */
export interface PendingReason {
  readonly reason: "Deferred" | "Infeasible";
  readonly message: string;
}

/** The node's facts for the decision; resources missing in `allocatable` are unlimited. */
export type ResizeNode = Pick<ResourceSettings, "allocatable"> & SwapSettings;

/**
 * Why a running pod cannot be allocated its manifest's resources now; undefined: it can. Decreases are always
 * allocated. Pure.
 * @param granted the pod with its allocation
 * @param others every other pod that holds resources, with its allocation
 */
export function judgeResize(
  wanted: Pod,
  granted: Pod,
  others: readonly Pod[],
  node: ResizeNode,
): PendingReason | undefined {
  const problems = resizeProblems(granted, wanted);
  if (problems.length > 0) {
    const message = problems.map(({ path, detail }) => `${path.join(".")}: ${detail}`).join("; ");
    return { reason: "Infeasible", message };
  }
  if (changesSwap(granted, wanted, node)) {
    return { reason: "Infeasible", message: "In-place resize of containers with swap is not supported." };
  }
  const lacking = resizableResources.flatMap((name) => lackOf(name, wanted, granted, others, node) ?? []);
  return lacking.find(({ reason }) => reason === "Infeasible") ?? lacking[0];
}

function lackOf(
  name: ResizableResource,
  wanted: Pod,
  granted: Pod,
  others: readonly Pod[],
  { allocatable }: ResizeNode,
): PendingReason | undefined {
  const capacityText = allocatable[name];
  const requested = requestOf(wanted, name);
  if (capacityText === undefined || requested.compare(requestOf(granted, name)) <= 0) return undefined;
  const capacity = parseQuantity(capacityText);
  const figure = (quantity: Quantity): bigint => (name === "cpu" ? quantity.milliValue() : quantity.value());
  if (requested.compare(capacity) > 0) {
    const figures = `requested: ${figure(requested)}, capacity: ${figure(capacity)}`;
    return { reason: "Infeasible", message: `Node didn't have enough capacity: ${name}, ${figures}` };
  }
  const used = others.reduce((sum, pod) => sum.add(requestOf(pod, name)), zeroQuantity);
  if (requested.add(used).compare(capacity) <= 0) return undefined;
  const figures = `requested: ${figure(requested)}, used: ${figure(used)}, capacity: ${figure(capacity)}`;
  return { reason: "Deferred", message: `Node didn't have enough resource: ${name}, ${figures}` };
}

/** A resource that grew for the pod and now exceeds the node in sum; undefined: none. Pure. */
export function overcommitted(
  wanted: Pod,
  granted: Pod,
  pods: readonly Pod[],
  { allocatable }: Pick<ResizeNode, "allocatable">,
): ResizableResource | undefined {
  return resizableResources.find((name) => {
    const capacityText = allocatable[name];
    if (capacityText === undefined || requestOf(wanted, name).compare(requestOf(granted, name)) <= 0) return false;
    const all = pods.reduce((sum, pod) => sum.add(requestOf(pod, name)), zeroQuantity);
    return all.compare(parseQuantity(capacityText)) > 0;
  });
}

function requestOf(pod: Pod, name: ResizableResource): Quantity {
  return podRequests(pod).get(name) ?? zeroQuantity;
}

export interface WaitingResize {
  readonly wanted: Pod;
  readonly granted: Pod;
  /** Deferred since, monotonic ms; undefined: not judged yet. */
  readonly sinceMs: number | undefined;
}

/**
 * The order in which resizes are granted: decreases first, then by priority, then Guaranteed before Burstable, then by
 * waiting time.
 */
export function byUrgency(a: WaitingResize, b: WaitingResize): number {
  const grows = ({ wanted, granted }: WaitingResize): boolean =>
    resizableResources.some((name) => requestOf(wanted, name).compare(requestOf(granted, name)) > 0);
  const guaranteed = ({ wanted }: WaitingResize): number => Number(qosClass(wanted) === "Guaranteed");
  return (
    Number(grows(a)) - Number(grows(b)) ||
    (b.wanted.spec.priority ?? 0) - (a.wanted.spec.priority ?? 0) ||
    guaranteed(b) - guaranteed(a) ||
    compareSince(a.sinceMs, b.sinceMs)
  );
}

function compareSince(a: number | undefined, b: number | undefined): number {
  if (a === b) return 0;
  return a === undefined ? 1 : b === undefined ? -1 : a - b;
}
