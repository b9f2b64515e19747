import type { ResourceFieldSelector as ResourceFieldSchema, EnvVarSource } from "../api/volume.ts";
import type { z } from "zod";
import { subscriptOf } from "../api/subscript.ts";
import { parseQuantity, QuantityError } from "../resources/quantity.ts";
import { invalid, notSupported, required, type FieldError } from "./field-errors.ts";
import { qualifiedNameProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

type FieldSelector = NonNullable<EnvVarSource["fieldRef"]>;
type ResourceSelector = z.infer<typeof ResourceFieldSchema>;

/** What both kinds of the downward API know as `spec.nodeName` (upstream: ConvertDownwardAPIFieldLabel). */
const oldNames: Readonly<Record<string, string>> = { "spec.host": "spec.nodeName" };

/**
 * Checks a field of the pod that is shown to its containers (upstream: validateObjectFieldSelector).
 * @param fields those that are offered, beside single labels and annotations
 */
export function* validateFieldRef(
  { apiVersion = "v1", fieldPath }: FieldSelector,
  fields: ReadonlySet<string>,
  path: FieldPath,
): Iterable<FieldError> {
  const here = [...path, "fieldPath"];
  if (fieldPath === "") {
    yield required(here);
    return;
  }
  if (apiVersion !== "v1") {
    yield invalid([...path, "apiVersion"], apiVersion, "unsupported pod version");
    return;
  }
  const subscripted = subscriptOf(fieldPath);
  if (subscripted === undefined) {
    if (!fields.has(oldNames[fieldPath] ?? fieldPath)) yield notSupported(here, fieldPath, [...fields].toSorted());
    return;
  }
  const { path: whole, key } = subscripted;
  if (whole !== "metadata.labels" && whole !== "metadata.annotations") {
    yield invalid(here, fieldPath, "does not support subscript");
    return;
  }
  const problem = qualifiedNameProblem(whole === "metadata.labels" ? key : key.toLowerCase());
  if (problem !== undefined) yield invalid(here, fieldPath, problem);
}

const resources = new Set(
  ["limits", "requests"].flatMap((kind) => ["cpu", "memory", "ephemeral-storage"].map((name) => `${kind}.${name}`)),
);
const cpuDivisors = ["1m", "1"];
const byteDivisors = "1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei".split(" ");

/** Checks a resource of a container that is shown to it (upstream: validateContainerResourceFieldSelector). */
export function* validateResourceFieldRef(
  { containerName, resource, divisor }: ResourceSelector,
  path: FieldPath,
  inVolume: boolean,
): Iterable<FieldError> {
  const here = [...path, "resource"];
  const ofHugePages = /^(?:limits|requests)\.hugepages-/u.test(resource);
  if (inVolume && !containerName) yield required([...path, "containerName"]);
  else if (resource === "") yield required(here);
  else if (!resources.has(resource) && !ofHugePages) yield notSupported(here, resource, [...resources].toSorted());
  if (divisor !== undefined) yield* validateDivisor(divisor, resource, [...path, "divisor"]);
}

function* validateDivisor(divisor: string | number, resource: string, path: FieldPath): Iterable<FieldError> {
  const allowed = resource.endsWith(".cpu") ? cpuDivisors : byteDivisors;
  try {
    const unit = parseQuantity(divisor);
    if (unit.isZero || allowed.includes(unit.toString())) return;
    yield invalid(path, divisor, `only divisor's values ${allowed.join(", ")} are supported with ${resource}`);
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    yield invalid(path, divisor, error.message);
  }
}
