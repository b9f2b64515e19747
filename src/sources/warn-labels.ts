import type { PodSpec } from "../api/pod.ts";
import type { FieldError } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

/** Labels of nodes that have another name now. */
const deprecated: Readonly<Record<string, string>> = {
  "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
  "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  "app.kubernetes.io/created-by": "deprecated since v1.9",
  "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
  "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
};

/** Where a pod selects nodes by deprecated labels. */
export function* deprecatedLabels(spec: PodSpec): Iterable<FieldError> {
  for (const key of Object.keys(spec.nodeSelector ?? {})) {
    const detail = problemOf(key);
    if (detail !== undefined) yield { path: ["spec", "nodeSelector", key], detail };
  }
  const path = ["spec", "affinity", "nodeAffinity"];
  const [required, preferred] = [
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
  ] as const;
  const affinity = field(field(spec, "affinity"), "nodeAffinity");
  const terms = [...path, required, "nodeSelectorTerms"];
  for (const [index, term] of listOf(field(field(affinity, required), "nodeSelectorTerms")).entries()) {
    yield* ofTerm(term, [...terms, index]);
  }
  for (const [index, wish] of listOf(field(affinity, preferred)).entries()) {
    yield* ofTerm(field(wish, "preference"), [...path, preferred, index, "preference"]);
  }
}

function* ofTerm(term: unknown, path: FieldPath): Iterable<FieldError> {
  for (const [index, expression] of listOf(field(term, "matchExpressions")).entries()) {
    const key = field(expression, "key");
    const problem = typeof key === "string" ? problemOf(key) : undefined;
    const here = [...path, "matchExpressions", index, "key"];
    if (problem !== undefined) yield { path: here, detail: `${String(key)} is ${problem}` };
  }
}

function problemOf(label: string): string | undefined {
  return Object.hasOwn(deprecated, label) ? deprecated[label] : undefined;
}

/** Affinity is for schedulers: its form was not validated. */
function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
