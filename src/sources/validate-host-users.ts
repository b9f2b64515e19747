import type { PodSpec } from "../api/pod.ts";
import { forbidden, type FieldError } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

/** Features that conflict with a user namespace (upstream: validateHostUsers). */
export function* validateHostUsers(spec: PodSpec, path: FieldPath): Iterable<FieldError> {
  if (spec.hostUsers !== false) return;
  const detail = "when `hostUsers` is false";
  for (const field of ["hostNetwork", "hostPID", "hostIPC"] as const) {
    if (spec[field] === true) yield forbidden([...path, field], detail);
  }
  for (const kind of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      // A device's owner can't be mapped as that of a mount can.
      if ((container.volumeDevices ?? []).length > 0) {
        yield forbidden([...path, kind, index, "volumeDevices"], detail);
      }
    }
  }
}
