import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { fullName } from "../api/full-name.ts";
import { podRequests } from "../resources/pod-totals.ts";
import { type FileSystems, storageParts } from "./file-systems.ts";
import { type PodUsage, usageOf } from "./pod-usage.ts";
import { resourceOf, type Signal } from "./thresholds.ts";

/** A pod that something runs of. */
export interface Candidate {
  readonly pod: Pod;
  /** Undefined: nobody knows. */
  readonly usage: PodUsage | undefined;
}

/** A pod with all that decides about its place among those that may be evicted. */
export interface Ranked extends Candidate {
  /** Of the starved resource; undefined: not known. Bytes, inodes or processes. */
  readonly amount: number | undefined;
  readonly request: number;
  /** It uses more than it asked for. False for a resource that has no requests (pids). */
  readonly exceeds: boolean;
  readonly priority: number;
  /** It is never evicted. */
  readonly isCritical: boolean;
}

/**
 * Pods in the order in which they are evicted for a signal, as upstream ranks them: who uses more than it asked for, then by
 * priority, then by how much more; for pids by priority and number of processes. Critical pods, which are
 * never evicted, come last. So do pods whose usage is not known, where upstream takes them first: nothing is known to be
 * won by them. Inodes are compared as they are, where upstream takes the bytes that a pod asked for off them. Pure.
 */
export function rankPods(candidates: readonly Candidate[], signal: Signal, fileSystems: FileSystems): Ranked[] {
  return candidates.map((candidate) => rankedOf(candidate, signal, fileSystems)).toSorted(compare);
}

function rankedOf({ pod, usage }: Candidate, signal: Signal, fileSystems: FileSystems): Ranked {
  const amount = usageOf(usage, signal, storageParts(signal, fileSystems));
  const request = requestOf(pod, signal);
  const exceeds = resourceOf(signal) !== "pids" && amount !== undefined && amount > request;
  return { pod, usage, amount, request, exceeds, priority: pod.spec.priority ?? 0, isCritical: isCriticalPod(pod) };
}

/** Inodes and processes are no resources that a pod could ask for. */
function requestOf(pod: Pod, signal: Signal): number {
  const resource = resourceOf(signal);
  if (resource === "inodes" || resource === "pids") return 0;
  return Number(podRequests(pod).get(resource)?.value() ?? 0n);
}

function compare(a: Ranked, b: Ranked): number {
  return (
    first(!a.isCritical, !b.isCritical) ||
    first(a.amount !== undefined, b.amount !== undefined) ||
    first(a.exceeds, b.exceeds) ||
    a.priority - b.priority ||
    over(b) - over(a) ||
    (fullName(a.pod.metadata) < fullName(b.pod.metadata) ? -1 : 1)
  );
}

function first(a: boolean, b: boolean): number {
  return Number(b) - Number(a);
}

function over({ amount = 0, request }: Ranked): number {
  return amount - request;
}
