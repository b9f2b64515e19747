import type { Pod } from "../api/pod.ts";
import type { ResourceSettings } from "./container-resources.ts";
import { changesSwap, type SwapSettings } from "./swap.ts";
import { podRequests } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";
import { parseQuantity, zeroQuantity, type Quantity } from "./quantity.ts";
import { resizableResources, type ResizableResource, resizeProblems } from "./resizable.ts";

/** Why a resize waits. Deferred: it may be granted later. Infeasible: this pod cannot be resized so. */
export interface PendingReason {
  readonly reason: "Deferred" | "Infeasible";
  readonly message: string;
}

/** The node's facts for the decision; resources missing in `allocatable` are unlimited. */
export type ResizeNode = Pick<ResourceSettings, "allocatable"> & SwapSettings;

/**
 * Why a running pod cannot be allocated its manifest's resources now; undefined: it can. Pure.
 * @param granted the pod with its allocation
 * @param objection the node's, for lack of room or as it would not take the pod now; asked last
 */
export function judgeResize(
  wanted: Pod,
  granted: Pod,
  node: SwapSettings,
  objection: () => string | undefined,
): PendingReason | undefined {
  const problems = resizeProblems(granted, wanted);
  if (problems.length > 0) {
    const message = problems.map(({ path, detail }) => `${path.join(".")}: ${detail}`).join("; ");
    return { reason: "Infeasible", message };
  }
  if (changesSwap(granted, wanted, node)) {
    return { reason: "Infeasible", message: "In-place resize of containers with swap is not supported." };
  }
  const message = objection();
  return message === undefined ? undefined : { reason: "Deferred", message };
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
    if (capacityText === undefined || requestOf(wanted, name) <= requestOf(granted, name)) return false;
    const all = pods.reduce((sum, pod) => sum + requestOf(pod, name), 0n);
    return all > figure(name, parseQuantity(capacityText));
  });
}

/** In millicores or bytes, as admission counts. */
function requestOf(pod: Pod, name: ResizableResource): bigint {
  return figure(name, podRequests(pod).get(name) ?? zeroQuantity);
}

function figure(name: ResizableResource, quantity: Quantity): bigint {
  return name === "cpu" ? quantity.milliValue() : quantity.value();
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
    resizableResources.some((name) => requestOf(wanted, name) > requestOf(granted, name));
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
