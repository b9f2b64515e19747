import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { fullName } from "../api/full-name.ts";
import { podRequests } from "../resources/pod-totals.ts";
import { type FileSystems, storageParts } from "./file-systems.ts";
import { type PodUsage, usageOf } from "./pod-usage.ts";
import { resourceOf, type Signal } from "./thresholds.ts";

/** A running pod. */
export interface Candidate {
  readonly pod: Pod;
  /** Undefined: unknown. */
  readonly usage: PodUsage | undefined;
  /** How old the usage is; undefined: it was measured for this ranking. */
  readonly measuredAgoMs?: number;
}

/** A pod with everything that decides its rank. */
export interface Ranked extends Candidate {
  /** Usage of the starved resource in bytes, inodes or processes; undefined: unknown. */
  readonly amount: number | undefined;
  /** Some of the usage is unknown: the amount, which exceeds the request all the same, is the least that it can be. */
  readonly isPart: boolean;
  readonly request: number;
  /** It is above its request. False for a resource without requests (pids). */
  readonly exceeds: boolean;
  readonly priority: number;
  /** Critical pods are never evicted. */
  readonly isCritical: boolean;
}

/**
 * Ranks pods in eviction order for a signal, as upstream: pods above their request, then by priority, then by the
 * excess; for pids by priority and number of processes. Critical pods, which are never evicted, come last. Two
 * differences: pods with unknown usage come last (for pids: of their priority) instead of first, because evicting them
 * may gain nothing, and so do pods of whose usage a part is unknown, unless the rest exceeds their request (among these
 * the smallest request goes first after the priority: it is the one most likely to be exceeded); and upstream subtracts
 * requested bytes from inode counts. Pure.
 */
export function rankPods(
  candidates: readonly Candidate[],
  signal: Signal,
  fileSystems: FileSystems | undefined,
): Ranked[] {
  const compare = resourceOf(signal) === "pids" ? compareProcesses : compareUsage;
  return candidates.map((candidate) => rankedOf(candidate, signal, fileSystems)).toSorted(compare);
}

function rankedOf(candidate: Candidate, signal: Signal, fileSystems: FileSystems | undefined): Ranked {
  const { pod, usage } = candidate;
  const used = usageOf(usage, signal, storageParts(signal, fileSystems));
  const request = requestOf(pod, signal);
  const isKnown = used !== undefined && (used.isWhole || used.value > request);
  const amount = isKnown ? used.value : undefined;
  const isPart = isKnown && !used.isWhole;
  const exceeds = resourceOf(signal) !== "pids" && amount !== undefined && amount > request;
  const priority = pod.spec.priority ?? 0;
  return { ...candidate, amount, isPart, request, exceeds, priority, isCritical: isCriticalPod(pod) };
}

/** There are no requests for inodes and processes. */
function requestOf(pod: Pod, signal: Signal): number {
  const resource = resourceOf(signal);
  if (resource === "inodes" || resource === "pids") return 0;
  return Number(podRequests(pod).get(resource)?.value() ?? 0n);
}

function compareUsage(a: Ranked, b: Ranked): number {
  return (
    first(!a.isCritical, !b.isCritical) ||
    first(a.amount !== undefined, b.amount !== undefined) ||
    first(a.exceeds, b.exceeds) ||
    a.priority - b.priority ||
    over(b) - over(a) ||
    byName(a, b)
  );
}

/** There are no requests that a pod can be above or within, so its priority protects it in any case. */
function compareProcesses(a: Ranked, b: Ranked): number {
  return (
    first(!a.isCritical, !b.isCritical) ||
    a.priority - b.priority ||
    first(a.amount !== undefined, b.amount !== undefined) ||
    over(b) - over(a) ||
    byName(a, b)
  );
}

function byName(a: Ranked, b: Ranked): number {
  return fullName(a.pod.metadata) < fullName(b.pod.metadata) ? -1 : 1;
}

function first(a: boolean, b: boolean): number {
  return Number(b) - Number(a);
}

/** Compared between pods whose usage is known, or between others: of those only the request counts. */
function over({ amount = 0, request }: Ranked): number {
  return amount - request;
}
