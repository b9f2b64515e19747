import { isSidecar } from "../api/all-containers.ts";
import type { Container, ResourceRequirements } from "../api/container.ts";
import type { PodSpec } from "../api/pod.ts";
import { containerLimits, containerRequests, isSupportedPodResource, parseList } from "../resources/pod-totals.ts";
import { QuantityError } from "../resources/quantity.ts";
import { resizableResources } from "../resources/resizable.ts";
import { duplicate, type FieldError, forbidden, invalid, notSupported, required } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateResources } from "./validate-container.ts";

/** Checks the resources of a pod as a whole (KEP-2837; upstream: validatePodResources). Expects defaults. */
export function* validatePodResources(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const { resources } = spec;
  if (resources === undefined) return;
  if (resources.claims !== undefined) {
    yield forbidden([...path, "claims"], "claims may not be set for Resources at pod-level");
  }
  for (const kind of ["limits", "requests"] as const) {
    for (const name of Object.keys(resources[kind] ?? {})) {
      if (isSupportedPodResource(name)) continue;
      yield notSupported([...path, kind, name], name, [...resizableResources, "hugepages-<size>"]);
    }
  }
  yield* validateResources(resources, path);
  try {
    yield* validateTotals(spec, resources, path);
  } catch (error) {
    // An invalid quantity has been reported already.
    if (!(error instanceof QuantityError)) throw error;
  }
}

/** The pod as a whole can't have less than its containers. */
function* validateTotals(spec: PodSpec, resources: ResourceRequirements, path: FieldPath): Iterable<FieldError> {
  const requests = parseList(resources.requests);
  const limits = parseList(resources.limits);
  for (const [name, sum] of containerRequests({ spec })) {
    const own = requests.get(name);
    if (own === undefined || sum.compare(own) <= 0) continue;
    const detail = `must be greater than or equal to aggregate container requests of ${sum.toString()}`;
    yield invalid([...path, "requests", name], own.toString(), detail);
  }
  for (const [name, sum] of containerLimits({ spec })) {
    const own = limits.get(name);
    if (!name.startsWith("hugepages-") || own === undefined || sum.compare(own) <= 0) continue;
    const detail = `must be greater than or equal to aggregate container limits of ${sum.toString()}`;
    yield invalid([...path, "limits", name], own.toString(), detail);
  }
  for (const [index, container] of spec.containers.entries()) {
    for (const [name, limit] of parseList(container.resources?.limits)) {
      const own = limits.get(name);
      if (own === undefined || limit.compare(own) <= 0) continue;
      const here = ["spec", "containers", index, "resources", "limits", name];
      yield invalid(here, limit.toString(), `must be less than or equal to pod limits of ${own.toString()}`);
    }
  }
}

const restartPolicies = ["NotRequired", "RestartContainer"];

/** Checks what a container does when it is resized (KEP-1287; upstream: validateResizePolicy). */
export function* validateResizePolicy(
  container: Container,
  kind: "containers" | "initContainers" | "ephemeralContainers",
  path: FieldPath,
  spec: PodSpec,
): Iterable<FieldError> {
  const names = new Set<string>();
  for (const [index, { resourceName, restartPolicy }] of (container.resizePolicy ?? []).entries()) {
    const here = [...path, index];
    if (names.has(resourceName)) yield duplicate([...here, "resourceName"], resourceName);
    names.add(resourceName);
    if (resourceName === "") yield required([...here, "resourceName"]);
    else if (!resizableResources.some((name) => name === resourceName)) {
      yield notSupported([...here, "resourceName"], resourceName, resizableResources);
    }
    const policy = [...here, "restartPolicy"];
    if (restartPolicy === "") yield required(policy);
    else if (!restartPolicies.includes(restartPolicy)) yield notSupported(policy, restartPolicy, restartPolicies);
    else if (restartPolicy === "NotRequired") continue;
    else if (spec.restartPolicy === "Never") {
      yield invalid(policy, restartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    } else if (kind === "initContainers" && !isSidecar(container)) {
      yield invalid(policy, restartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers");
    }
  }
}
