import type { PodSpec } from "../api/pod.ts";
import type { TopologySpreadConstraint } from "../api/scheduling.ts";
import { duplicate, forbidden, invalid, notSupported, required, type FieldError } from "./field-errors.ts";
import { dnsSubdomainProblem, labelValueProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateAffinity, validateLabelKeys } from "./validate-affinity.ts";
import { validateLabelName, validateLabels, validateLabelSelector } from "./validate-selector.ts";

/**
 * Checks what decides where a pod runs, though this pod has its node already: a manifest that a scheduler would refuse
 * is refused here too (upstream: ValidatePodSpec).
 */
export function* validateScheduling(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  yield* validateLabels(spec.nodeSelector ?? {}, [...path, "nodeSelector"]);
  yield* validateAffinity(spec.affinity, [...path, "affinity"]);
  yield* validateTolerations(spec.tolerations ?? [], [...path, "tolerations"]);
  yield* validateSpread(spec.topologySpreadConstraints ?? [], [...path, "topologySpreadConstraints"]);
  yield* validateGates(spec.schedulingGates ?? [], [...path, "schedulingGates"]);
  yield* validateGroup(spec.schedulingGroup, [...path, "schedulingGroup"]);
  const { preemptionPolicy } = spec;
  const policies = ["Never", "PreemptLowerPriority"];
  const here = [...path, "preemptionPolicy"];
  if (preemptionPolicy === "") yield required(here);
  else if (preemptionPolicy !== undefined && !policies.includes(preemptionPolicy)) {
    yield notSupported(here, preemptionPolicy, policies);
  }
}

type Toleration = NonNullable<PodSpec["tolerations"]>[number];

/** Checks tolerations: those of the spec, and those of the annotation that came before it (upstream: ValidateTolerations). */
export function* validateTolerations(tolerations: readonly Toleration[], path: FieldPath): Iterable<FieldError> {
  const effects = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
  const operators = ["Equal", "Exists"];
  for (const [index, { key, operator = "", value = "", effect, tolerationSeconds }] of tolerations.entries()) {
    const here = [...path, index];
    if (key) yield* validateLabelName(key, [...here, "key"]);
    if (!key && operator !== "Exists") {
      const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      yield invalid([...here, "operator"], operator, detail);
    }
    if (tolerationSeconds !== undefined && effect !== "NoExecute") {
      yield invalid([...here, "effect"], effect ?? "", "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    const problem = labelValueProblem(value);
    if (operator === "Exists" && value !== "") {
      yield invalid([...here, "value"], value, "value must be empty when `operator` is 'Exists'");
    } else if (operator !== "" && !operators.includes(operator)) {
      yield notSupported([...here, "operator"], operator, operators);
    } else if (problem !== undefined) yield invalid([...here, "value"], value, problem);
    if (effect && !effects.includes(effect)) yield notSupported([...here, "effect"], effect, effects);
  }
}

function* validateSpread(constraints: readonly TopologySpreadConstraint[], path: FieldPath): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const [index, constraint] of constraints.entries()) {
    const here = [...path, index];
    const { maxSkew, topologyKey = "", whenUnsatisfiable = "" } = constraint;
    if (maxSkew <= 0) yield invalid([...here, "maxSkew"], maxSkew, "must be greater than zero");
    if (topologyKey === "") yield required([...here, "topologyKey"], "can not be empty");
    const actions = ["DoNotSchedule", "ScheduleAnyway"];
    if (!actions.includes(whenUnsatisfiable)) {
      yield notSupported([...here, "whenUnsatisfiable"], whenUnsatisfiable, actions);
    }
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    if (seen.has(pair)) yield duplicate([...here, "topologyKey"], pair);
    seen.add(pair);
    yield* validateSpreadOptions(constraint, here);
  }
}

function* validateSpreadOptions(constraint: TopologySpreadConstraint, path: FieldPath): Iterable<FieldError> {
  const { minDomains, whenUnsatisfiable = "" } = constraint;
  const here = [...path, "minDomains"];
  if (minDomains !== undefined && minDomains <= 0) yield invalid(here, minDomains, "must be greater than zero");
  if (minDomains !== undefined && whenUnsatisfiable !== "DoNotSchedule") {
    const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`;
    yield invalid(here, minDomains, detail);
  }
  const policies = ["Honor", "Ignore"];
  for (const field of ["nodeAffinityPolicy", "nodeTaintsPolicy"] as const) {
    const policy = constraint[field];
    if (policy !== undefined && !policies.includes(policy)) yield notSupported([...path, field], policy, policies);
  }
  yield* validateLabelKeys(constraint, path);
  yield* validateLabelSelector(constraint.labelSelector, [...path, "labelSelector"]);
}

/** Gates hold a pod back from any node, and this one has its own. */
function* validateGates(gates: NonNullable<PodSpec["schedulingGates"]>, path: FieldPath): Iterable<FieldError> {
  const names = new Set<string>();
  for (const [index, { name = "" }] of gates.entries()) {
    yield* validateLabelName(name, [...path, index, "name"]);
    if (names.has(name)) yield duplicate([...path, index, "name"], name);
    names.add(name);
  }
  if (gates.length > 0) yield forbidden(path, "a pod with a node cannot have scheduling gates");
}

function* validateGroup(group: PodSpec["schedulingGroup"], path: FieldPath): Iterable<FieldError> {
  if (group === undefined) return;
  const { podGroupName } = group;
  const here = [...path, "podGroupName"];
  if (podGroupName === undefined) yield invalid(here, "", "must specify one of: `podGroupName`");
  const problem = podGroupName === undefined ? undefined : dnsSubdomainProblem(podGroupName);
  if (podGroupName !== undefined && problem !== undefined) yield invalid(here, podGroupName, problem);
}
