import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { RejectionReason } from "../journal/vocabulary.ts";
import type { Pressure } from "../eviction/pressure.ts";
import { admitBySecurity, admitByProfile, admitUnderPressure, type NodeAdmission } from "./node-admission.ts";
import { missingInAnyCase, podsToPreempt, type Requirement } from "./preemption.ts";
import { type Failure, predicateFailures, type PredicateNode } from "./predicates.ts";
import { rejected, type Rejection } from "./rejection.ts";

/** Reason of pods that ask for what this version can't do (upstream's, of nodes without a declared feature). */
export const unsupportedReason = "PodFeatureUnsupported";

/** A pod that holds something of the node, with the resources that it was granted. */
export interface Holder {
  readonly pod: Pod;
  /** It is being stopped: what it holds is free soon. */
  readonly ending: boolean;
}

export interface AdmissionContext {
  readonly holders: readonly Holder[];
  readonly node: PredicateNode;
  readonly security: NodeAdmission;
  /** What of the pod this version can't do; empty: nothing. */
  readonly unsupported: string;
  /** Conditions of the node under which it takes in fewer pods. */
  readonly pressures?: readonly Pressure[];
}

/** What becomes of a pod that comes to the node. */
export type Admission =
  | { readonly kind: "admit" }
  | { readonly kind: "reject"; readonly rejection: Rejection }
  /** Pods that are being stopped have what it needs. */
  | { readonly kind: "wait"; readonly for: readonly Pod[]; readonly lacks: string }
  /** These have to go first. resource: what there is too little of, the first of all. */
  | { readonly kind: "preempt"; readonly victims: readonly Pod[]; readonly lacks: string; readonly resource: string };

/**
 * Decides whether a pod may run beside those that hold something of the node, in the order of upstream's admission
 * handlers. What is only not free yet is waited for, where upstream rejects the pod. Pure.
 */
export function decideAdmission(pod: Pod, context: AdmissionContext): Admission {
  const { holders, node, security, unsupported } = context;
  const early = admitUnderPressure(pod, context.pressures ?? []) ?? admitBySecurity(pod, security, node.place?.labels);
  if (early !== undefined) return reject(early.reason, early.message);
  const podsOf = (list: readonly Holder[]): Pod[] => list.map((holder) => holder.pod);
  const staying = holders.filter(({ ending }) => !ending);
  const failures = predicateFailures(pod, podsOf(staying), node);
  const fits = makeRoom(pod, podsOf(staying), failures);
  if (fits.kind === "reject") return fits;
  const late = admitByProfile(pod, security);
  if (late !== undefined) return reject(late.reason, late.message);
  if (unsupported !== "") return reject(unsupportedReason, unsupported);
  if (fits.kind === "preempt") return fits;
  const [lack] = predicateFailures(pod, podsOf(holders), node);
  if (lack === undefined) return { kind: "admit" };
  return { kind: "wait", for: podsOf(holders.filter(({ ending }) => ending)), lacks: textOf(lack) };
}

/** For a critical pod others have to go, if it lacks nothing but resources. */
function makeRoom(pod: Pod, others: readonly Pod[], failures: readonly Failure[]): Admission {
  const [first] = failures;
  if (first === undefined) return { kind: "admit" };
  const other = failures.find(({ kind }) => kind === "predicate");
  if (!isCriticalPod(pod) || other !== undefined) return rejectFor(isCriticalPod(pod) ? (other ?? first) : first);
  const requirements = failures.flatMap((failure): Requirement[] => {
    if (failure.kind !== "resource") return [];
    return [{ name: failure.name, amount: failure.requested - (failure.capacity - failure.used) }];
  });
  const victims = podsToPreempt(pod, others, requirements);
  if (victims !== undefined) return { kind: "preempt", victims, lacks: textOf(first), resource: first.name };
  const listed = missingInAnyCase(pod, others, requirements)
    .map(({ name, amount }) => `(res: ${name}, q: ${amount}), `)
    .join("");
  return reject(
    "UnexpectedAdmissionError",
    "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to " +
      `preempt: no set of running pods found to reclaim resources: [${listed}]`,
  );
}

function rejectFor(failure: Failure): Admission {
  const reason = failure.kind === "resource" ? (`OutOf${failure.name}` as const) : failure.name;
  return reject(reason, textOf(failure));
}

function textOf(failure: Failure): string {
  if (failure.kind === "predicate") return failure.text;
  const { name, requested, used, capacity } = failure;
  return `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`;
}

function reject(reason: RejectionReason, message: string): Admission {
  return { kind: "reject", rejection: { reason, message: `${rejected}${message}` } };
}
