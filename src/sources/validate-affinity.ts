import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
} from "../api/scheduling.ts";
import { forbidden, invalid, required, type FieldError } from "./field-errors.ts";
import { dnsLabelProblem, dnsSubdomainProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import {
  validateLabelName,
  validateLabelSelector,
  validateLabelValues,
  validateSetOperator,
} from "./validate-selector.ts";

/** Checks the affinity of a pod (upstream: validateAffinity). */
export function* validateAffinity(affinity: Affinity | undefined, path: FieldPath): Iterable<FieldError> {
  const node = affinity?.nodeAffinity;
  const here = [...path, "nodeAffinity"];
  const requiredTerms = node?.requiredDuringSchedulingIgnoredDuringExecution;
  if (requiredTerms !== undefined) {
    yield* validateNodeSelector(requiredTerms, [...here, "requiredDuringSchedulingIgnoredDuringExecution"]);
  }
  for (const [index, term] of (node?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const preferred = [...here, "preferredDuringSchedulingIgnoredDuringExecution", index];
    yield* validateWeight(term.weight, [...preferred, "weight"]);
    // Values that no label can have never match: a preference may hold them.
    yield* validateTerm(term.preference, [...preferred, "preference"], false);
  }
  yield* validatePodAffinity(affinity?.podAffinity, [...path, "podAffinity"]);
  yield* validatePodAffinity(affinity?.podAntiAffinity, [...path, "podAntiAffinity"]);
}

/** Validates a node selector (upstream: ValidateNodeSelector). */
export function* validateNodeSelector(
  { nodeSelectorTerms = [] }: { readonly nodeSelectorTerms?: readonly NodeSelectorTerm[] | undefined },
  path: FieldPath,
): Iterable<FieldError> {
  const terms = [...path, "nodeSelectorTerms"];
  if (nodeSelectorTerms.length === 0) yield required(terms, "must have at least one node selector term");
  for (const [index, term] of nodeSelectorTerms.entries()) yield* validateTerm(term, [...terms, index], true);
}

function* validateWeight(weight: number, path: FieldPath): Iterable<FieldError> {
  if (weight < 1 || weight > 100) yield invalid(path, weight, "must be in the range 1-100");
}

function* validateTerm(term: NodeSelectorTerm, path: FieldPath, strict: boolean): Iterable<FieldError> {
  for (const [index, expression] of (term.matchExpressions ?? []).entries()) {
    yield* validateExpression(expression, [...path, "matchExpressions", index], strict);
  }
  for (const [index, field] of (term.matchFields ?? []).entries()) {
    yield* validateNodeField(field, [...path, "matchFields", index]);
  }
}

const nodeOperators = new Set(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);

function* validateExpression(
  { key, operator = "", values = [] }: NodeSelectorRequirement,
  path: FieldPath,
  strict: boolean,
): Iterable<FieldError> {
  yield* validateSetOperator(operator, values, path);
  if ((operator === "Gt" || operator === "Lt") && values.length !== 1) {
    yield required([...path, "values"], "must be specified single value when `operator` is 'Lt' or 'Gt'");
  }
  if (!nodeOperators.has(operator)) yield invalid([...path, "operator"], operator, "not a valid selector operator");
  yield* validateLabelName(key, [...path, "key"]);
  if (strict) yield* validateLabelValues(values, [...path, "values"]);
}

function* validateNodeField(
  { key, operator = "", values = [] }: NodeSelectorRequirement,
  path: FieldPath,
): Iterable<FieldError> {
  if (operator !== "In" && operator !== "NotIn") {
    yield invalid([...path, "operator"], operator, "not a valid selector operator");
  } else if (values.length !== 1) {
    const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    yield required([...path, "values"], detail);
  }
  if (key !== "metadata.name") {
    yield invalid([...path, "key"], key, "not a valid field selector key");
    return;
  }
  for (const [index, value] of values.entries()) {
    const problem = dnsSubdomainProblem(value);
    if (problem !== undefined) yield invalid([...path, "values", index], value, problem);
  }
}

function* validatePodAffinity(affinity: PodAffinity | undefined, path: FieldPath): Iterable<FieldError> {
  for (const [index, term] of (affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    yield* validatePodTerm(term, [...path, "requiredDuringSchedulingIgnoredDuringExecution", index]);
  }
  for (const [index, term] of (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const here = [...path, "preferredDuringSchedulingIgnoredDuringExecution", index];
    yield* validateWeight(term.weight, [...here, "weight"]);
    yield* validatePodTerm(term.podAffinityTerm, [...here, "podAffinityTerm"]);
  }
}

function* validatePodTerm(term: PodAffinityTerm, path: FieldPath): Iterable<FieldError> {
  const { labelSelector, namespaceSelector, namespaces = [], topologyKey } = term;
  yield* validateLabelSelector(labelSelector, [...path, "labelSelector"]);
  yield* validateLabelSelector(namespaceSelector, [...path, "namespaceSelector"]);
  for (const [index, name] of namespaces.entries()) {
    const problem = dnsLabelProblem(name);
    if (problem !== undefined) yield invalid([...path, "namespaces", index], name, problem);
  }
  yield* validateLabelKeys(term, path);
  if (topologyKey === undefined) yield required([...path, "topologyKey"], "can not be empty");
  else yield* validateLabelName(topologyKey, [...path, "topologyKey"]);
}

type LabelKeys = Pick<PodAffinityTerm, "labelSelector" | "matchLabelKeys" | "mismatchLabelKeys">;

/**
 * Checks the keys whose values are taken from the pod's own labels (upstream:
 * ValidateMatchLabelKeysAndMismatchLabelKeys).
 */
export function* validateLabelKeys(
  { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] }: LabelKeys,
  path: FieldPath,
): Iterable<FieldError> {
  const lists = { matchLabelKeys, mismatchLabelKeys };
  for (const [name, keys] of Object.entries(lists)) {
    const here = [...path, name];
    if (keys.length === 0) continue;
    if (labelSelector === undefined) yield forbidden(here, "must not be specified when labelSelector is not set");
    else for (const [index, key] of keys.entries()) yield* validateLabelName(key, [...here, index]);
  }
  const selected = new Set(Object.keys(labelSelector?.matchLabels ?? {}));
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    const index = matchLabelKeys.indexOf(key);
    if (index >= 0 && selected.has(key)) {
      yield invalid([...path, "matchLabelKeys", index], key, "exists in both matchLabelKeys and labelSelector");
    }
    selected.add(key);
  }
  for (const [index, key] of matchLabelKeys.entries()) {
    if (!mismatchLabelKeys.includes(key)) continue;
    yield invalid([...path, "matchLabelKeys", index], key, "exists in both matchLabelKeys and mismatchLabelKeys");
  }
}
