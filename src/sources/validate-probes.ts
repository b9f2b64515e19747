import type { Container } from "../api/container.ts";
import { forbidden, invalid, type FieldError } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateHandler } from "./validate-handler.ts";
import type { ContainerKind } from "./validate-lifecycle.ts";

const kinds = ["livenessProbe", "readinessProbe", "startupProbe"] as const;
const counts = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
] as const;

/** Checks a container's probes (upstream: validateLivenessProbe, validateReadinessProbe, validateStartupProbe). */
export function* validateProbes(container: Container, kind: ContainerKind, path: FieldPath): Iterable<FieldError> {
  for (const name of kinds) {
    const probe = container[name];
    if (probe === undefined) continue;
    const here = [...path, name];
    if (kind === "ephemeralContainers") {
      yield forbidden(here, "cannot be set for an Ephemeral Container");
      continue;
    }
    if (kind === "initContainers" && container.restartPolicy !== "Always") {
      yield forbidden(here, "may not be set for init containers without restartPolicy=Always");
      continue;
    }
    yield* validateHandler(probe, here, undefined);
    for (const field of counts) {
      const value = probe[field];
      if (value !== undefined && value < 0) {
        yield invalid([...here, field], value, "must be greater than or equal to 0");
      }
    }
    if (name !== "readinessProbe" && (probe.successThreshold || 1) !== 1) {
      yield invalid([...here, "successThreshold"], probe.successThreshold ?? 0, "must be 1");
    }
    yield* validateGrace(probe.terminationGracePeriodSeconds, name, [...here, "terminationGracePeriodSeconds"]);
  }
}

function* validateGrace(
  seconds: number | undefined,
  name: (typeof kinds)[number],
  path: FieldPath,
): Iterable<FieldError> {
  if (seconds === undefined) return;
  if (seconds <= 0) yield invalid(path, seconds, "must be greater than 0");
  if (name === "readinessProbe") yield invalid(path, seconds, "must not be set for readinessProbes");
}
