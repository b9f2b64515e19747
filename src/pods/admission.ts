import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { missingInAnyCase, podsToPreempt, type Requirement } from "./preemption.ts";
import { type Failure, predicateFailures, type PredicateNode } from "./predicates.ts";
import { type Rejection, rejection } from "./rejection.ts";

/** A pod that holds resources of the node, with what was allocated to it. */
export interface Holder {
  readonly pod: Pod;
  /** It is being stopped: its resources will soon be free. */
  readonly ending: boolean;
}

/** A snapshot of everything that a pod is judged by. */
export interface AdmissionSnapshot {
  readonly holders: readonly Holder[];
  readonly node: PredicateNode;
}

/**
 * A room's admission handler (upstream's PodAdmitHandler): why a pod must not run here; undefined: no objection.
 * Decides from the snapshot and the room's own state, and changes nothing. Asked of new pods, and of running ones that
 * are to be resized.
 */
export type AdmissionHandler = (pod: Pod, snapshot: AdmissionSnapshot) => Rejection | undefined;

/** The handlers, in upstream's order. */
export interface AdmissionChain {
  /** Asked before the resource check. */
  readonly before: readonly AdmissionHandler[];
  /** Asked after the resource check has passed, with or without preemption. */
  readonly after: readonly AdmissionHandler[];
  /** Reserves what an admitted pod needs. Called again when the pod changes, and when it returns under its UID. */
  readonly reserve: (pod: Pod, cause: Cause) => void;
}

/** The outcome of admission. */
export type Admission =
  | { readonly kind: "admit" }
  | { readonly kind: "reject"; readonly rejection: Rejection }
  /** Pods that are being stopped hold what it needs. */
  | { readonly kind: "wait"; readonly for: readonly Pod[]; readonly lacks: string }
  /** These must be preempted. resource: the first insufficient resource. */
  | { readonly kind: "preempt"; readonly victims: readonly Pod[]; readonly lacks: string; readonly resource: string };

/**
 * Decides whether a pod may run beside those that hold resources, in the order of upstream's admission handlers. Where
 * upstream rejects a pod because resources are not free yet, it waits here. Pure.
 */
export function decideAdmission(
  pod: Pod,
  { before, after }: Pick<AdmissionChain, "before" | "after">,
  snapshot: AdmissionSnapshot,
): Admission {
  const { holders, node } = snapshot;
  const early = firstOf(before, pod, snapshot);
  if (early !== undefined) return reject(early);
  const podsOf = (list: readonly Holder[]): Pod[] => list.map((holder) => holder.pod);
  const staying = holders.filter(({ ending }) => !ending);
  const failures = predicateFailures(pod, podsOf(staying), node);
  const fits = makeRoom(pod, podsOf(staying), failures);
  if (fits.kind === "reject") return fits;
  const late = firstOf(after, pod, snapshot);
  if (late !== undefined) return reject(late);
  if (fits.kind === "preempt") return fits;
  const [lack] = predicateFailures(pod, podsOf(holders), node);
  if (lack === undefined) return { kind: "admit" };
  return { kind: "wait", for: podsOf(holders.filter(({ ending }) => ending)), lacks: textOf(lack) };
}

/**
 * Why a running pod is not allocated what it requests now, in upstream's words; undefined: it can be. Asks the handlers
 * that admit pods, as upstream does; but no pod is preempted for a resize. Pure.
 * @param has the pod as allocated
 * @param others every other pod that holds resources, as allocated
 */
export function resizeObjection(
  pod: Pod,
  has: Pod,
  others: readonly Pod[],
  { before, after }: Pick<AdmissionChain, "before" | "after">,
  node: PredicateNode,
): string | undefined {
  const snapshot = { holders: others.map((other) => ({ pod: other, ending: false })), node };
  const early = firstOf(before, pod, snapshot);
  if (early !== undefined) return early.message;
  const failures = predicateFailures(pod, others, node, has);
  const failure = lastingOf(pod, failures) ?? failures[0];
  return failure === undefined ? firstOf(after, pod, snapshot)?.message : textOf(failure);
}

function firstOf(handlers: readonly AdmissionHandler[], pod: Pod, snapshot: AdmissionSnapshot): Rejection | undefined {
  for (const handler of handlers) {
    const refusal = handler(pod, snapshot);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** A critical pod preempts others if only resources are insufficient. */
function makeRoom(pod: Pod, others: readonly Pod[], failures: readonly Failure[]): Admission {
  const [first] = failures;
  if (first === undefined) return { kind: "admit" };
  const lasting = lastingOf(pod, failures);
  if (!isCriticalPod(pod) || lasting !== undefined) return rejectFor(lasting ?? first);
  const requirements = failures.flatMap((failure): Requirement[] => {
    if (failure.kind !== "resource") return [];
    return [{ name: failure.name, amount: failure.requested - (failure.capacity - failure.used) }];
  });
  const victims = podsToPreempt(pod, others, requirements);
  if (victims !== undefined) return { kind: "preempt", victims, lacks: textOf(first), resource: first.name };
  const listed = missingInAnyCase(pod, others, requirements)
    .map(({ name, amount }) => `(res: ${name}, q: ${amount}), `)
    .join("");
  const message =
    "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to " +
    `preempt: no set of running pods found to reclaim resources: [${listed}]`;
  return reject({ reason: "UnexpectedAdmissionError", message });
}

/** What preemption cannot help a critical pod with: upstream names it first. */
function lastingOf(pod: Pod, failures: readonly Failure[]): Failure | undefined {
  return isCriticalPod(pod) ? failures.find(({ kind }) => kind === "predicate") : undefined;
}

function rejectFor(failure: Failure): Admission {
  const reason = failure.kind === "resource" ? (`OutOf${failure.name}` as const) : failure.name;
  return reject({ reason, message: textOf(failure) });
}

function textOf(failure: Failure): string {
  if (failure.kind === "predicate") return failure.text;
  const { name, requested, used, capacity } = failure;
  return `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`;
}

function reject({ reason, message }: Rejection): Admission {
  return { kind: "reject", rejection: rejection(reason, message) };
}
