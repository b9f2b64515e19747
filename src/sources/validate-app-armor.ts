import type { PodManifest } from "../api/pod.ts";
import { appArmorAnnotationPrefix } from "../runtime/config/security-context.ts";
import { forbidden, invalid, type FieldError } from "./field-errors.ts";

const localhost = "localhost/";

/**
 * Checks the annotations that named AppArmor profiles before there were fields for them: each names a container and a
 * profile, and says what the fields say (upstream: ValidateAppArmorPodAnnotations,
 * validateAppArmorAnnotationsAndFieldsMatchOnCreate).
 */
export function* validateAppArmor({ metadata, spec }: PodManifest): Iterable<FieldError> {
  const kinds = ["initContainers", "containers", "ephemeralContainers"] as const;
  const containers = kinds.flatMap((kind) =>
    (spec[kind] ?? []).map((container, index) => ({ kind, container, index })),
  );
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    if (!key.startsWith(appArmorAnnotationPrefix)) continue;
    const path = ["metadata", "annotations", key];
    const name = key.slice(appArmorAnnotationPrefix.length);
    const found = containers.find(({ container }) => container.name === name);
    if (!["", "runtime/default", "unconfined"].includes(value) && !value.startsWith(localhost)) {
      yield invalid(path, value, "invalid AppArmor profile name");
    }
    if (found === undefined) {
      yield invalid(path, name, "container not found");
      continue;
    }
    const field = found.container.securityContext?.appArmorProfile ?? spec.securityContext?.appArmorProfile;
    if (field === undefined || value === annotationOf(field)) continue;
    const here = ["spec", found.kind, found.index, "securityContext", "appArmorProfile"];
    yield forbidden(here, `apparmor profile in annotation (${JSON.stringify(value)}) and field must match`);
  }
}

function annotationOf(profile: { readonly type: string; readonly localhostProfile?: string | undefined }): string {
  if (profile.type === "RuntimeDefault") return "runtime/default";
  return profile.type === "Unconfined" ? "unconfined" : `${localhost}${profile.localhostProfile ?? ""}`;
}
