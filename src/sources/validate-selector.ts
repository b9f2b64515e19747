import type { z } from "zod";
import type { LabelSelector } from "../api/meta.ts";
import { forbidden, invalid, required, type FieldError } from "./field-errors.ts";
import { labelValueProblem, qualifiedNameProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

/** Validates labels of selectors, or of nodes (upstream: ValidateLabels). */
export function* validateLabels(labels: Readonly<Record<string, string>>, path: FieldPath): Iterable<FieldError> {
  for (const [key, value] of Object.entries(labels)) {
    const problem = qualifiedNameProblem(key);
    if (problem !== undefined) yield invalid([...path, key], key, problem);
    const valueProblem = labelValueProblem(value);
    if (valueProblem !== undefined) yield invalid([...path, key], value, valueProblem);
  }
}

export function* validateLabelName(name: string, path: FieldPath): Iterable<FieldError> {
  const problem = qualifiedNameProblem(name);
  if (problem !== undefined) yield invalid(path, name, problem);
}

export function* validateLabelValues(values: readonly string[], path: FieldPath): Iterable<FieldError> {
  for (const [index, value] of values.entries()) {
    const problem = labelValueProblem(value);
    if (problem !== undefined) yield invalid([...path, index], value, problem);
  }
}

/** Checks a selector of labels (upstream: ValidateLabelSelector). */
export function* validateLabelSelector(
  selector: z.infer<typeof LabelSelector> | undefined,
  path: FieldPath,
): Iterable<FieldError> {
  yield* validateLabels(selector?.matchLabels ?? {}, [...path, "matchLabels"]);
  for (const [index, { key, operator, values = [] }] of (selector?.matchExpressions ?? []).entries()) {
    const here = [...path, "matchExpressions", index];
    yield* validateSetOperator(operator, values, here);
    if (!setOperators.has(operator)) yield invalid([...here, "operator"], operator, "not a valid selector operator");
    yield* validateLabelName(key, [...here, "key"]);
    yield* validateLabelValues(values, [...here, "values"]);
  }
}

const setOperators = new Set(["In", "NotIn", "Exists", "DoesNotExist"]);

/** Checks that an operator has values when it compares with some, and none when it does not. */
export function* validateSetOperator(
  operator: string,
  values: readonly string[],
  path: FieldPath,
): Iterable<FieldError> {
  const compares = operator === "In" || operator === "NotIn";
  if (compares && values.length === 0) {
    yield required([...path, "values"], "must be specified when `operator` is 'In' or 'NotIn'");
  }
  if (!compares && setOperators.has(operator) && values.length > 0) {
    yield forbidden([...path, "values"], "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  }
}
