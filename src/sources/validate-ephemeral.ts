import { containersOf } from "../api/all-containers.ts";
import type { EphemeralContainer } from "../api/container.ts";
import type { PodSpec } from "../api/pod.ts";
import { forbidden, notFound, type FieldError } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

/** Fields of services, and those that a container that never restarts could not release. */
const notForEphemeral = ["ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"] as const;

/**
 * What ephemeral containers may not have beside probes and hooks, which are checked where those are (upstream:
 * validateEphemeralContainers).
 */
export function* validateEphemeralContainers(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  const targets = new Set(containersOf(spec).map(({ name }) => name));
  for (const [index, container] of (spec.ephemeralContainers ?? []).entries()) {
    const here = [...path, index];
    const { targetContainerName: target, volumeMounts = [] } = container;
    if (target && !targets.has(target)) yield notFound([...here, "targetContainerName"], target);
    for (const field of notForEphemeral) {
      if (isSet(container, field)) yield forbidden([...here, field], "cannot be set for an Ephemeral Container");
    }
    for (const [position, mount] of volumeMounts.entries()) {
      for (const field of ["subPath", "subPathExpr"] as const) {
        if (!mount[field]) continue;
        yield forbidden([...here, "volumeMounts", position, field], "cannot be set for an Ephemeral Container");
      }
    }
  }
}

/** An empty list or object says nothing. */
function isSet(container: EphemeralContainer, field: (typeof notForEphemeral)[number]): boolean {
  const value = container[field];
  return typeof value === "object" ? Object.keys(value).length > 0 : value !== undefined;
}
