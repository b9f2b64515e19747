import * as z from "zod";
import type { PodManifest } from "../api/pod.ts";
import { Toleration } from "../api/pod.ts";
import { forbidden, invalid, type FieldError } from "./field-errors.ts";
import { localPathProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateTolerations } from "./validate-scheduling.ts";

const deletionCost = "controller.kubernetes.io/pod-deletion-cost";
const oldTolerations = "scheduler.alpha.kubernetes.io/tolerations";
const podSeccomp = "seccomp.security.alpha.kubernetes.io/pod";
const containerSeccomp = "container.seccomp.security.alpha.kubernetes.io/";

/**
 * Checks the annotations that mean something to Kubernetes, AppArmor's apart (upstream: ValidatePodSpecificAnnotations,
 * validateSeccompAnnotationsAndFields).
 */
export function* validateAnnotations({ metadata, spec }: PodManifest): Iterable<FieldError> {
  const annotations = metadata.annotations ?? {};
  for (const [key, value] of Object.entries(annotations)) {
    const path = ["metadata", "annotations", key];
    if (key === deletionCost && !isDeletionCost(value)) yield invalid(path, value, "must be a 32bit integer");
    if (key === oldTolerations && value !== "") yield* validateOldTolerations(value, path);
    if (key === podSeccomp || key.startsWith(containerSeccomp)) yield* validateSeccomp(value, path);
  }
  const ofPod = annotations[podSeccomp];
  const podProfile = spec.securityContext?.seccompProfile;
  if (ofPod !== undefined) yield* sameSeccomp(ofPod, podProfile, ["spec", "securityContext", "seccompProfile"]);
  for (const kind of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const [index, { name, securityContext }] of (spec[kind] ?? []).entries()) {
      const value = annotations[`${containerSeccomp}${name}`];
      const path = ["spec", kind, index, "securityContext", "seccompProfile"];
      if (value !== undefined) yield* sameSeccomp(value, securityContext?.seccompProfile, path);
    }
  }
}

function isDeletionCost(value: string): boolean {
  return /^(?:0|[1-9]\d*|-\d+)$/u.test(value) && Math.abs(Number(value) + 0.5) < 2 ** 31;
}

function* validateOldTolerations(value: string, path: FieldPath): Iterable<FieldError> {
  let json: unknown;
  try {
    json = JSON.parse(value);
  } catch {
    yield invalid(path, value, "must be JSON");
    return;
  }
  const tolerations = z.array(Toleration).safeParse(json);
  if (!tolerations.success) yield invalid(path, value, "must be a list of tolerations");
  else for (const { detail } of validateTolerations(tolerations.data, path)) yield { path, detail };
}

function* validateSeccomp(value: string, path: FieldPath): Iterable<FieldError> {
  if (["runtime/default", "docker/default", "unconfined"].includes(value)) return;
  const isLocal = value.startsWith(localPrefix);
  const problem = isLocal ? localPathProblem(value.slice(localPrefix.length)) : "must be a valid seccomp profile";
  if (problem !== undefined) yield invalid(path, value, problem);
}

const localPrefix = "localhost/";

type Profile = NonNullable<NonNullable<PodManifest["spec"]["securityContext"]>["seccompProfile"]>;

/** An annotation and the field that came after it say the same. */
function* sameSeccomp(value: string, profile: Profile | undefined, path: FieldPath): Iterable<FieldError> {
  if (profile === undefined) return;
  const expected: Readonly<Record<string, readonly string[]>> = {
    Unconfined: ["unconfined"],
    RuntimeDefault: ["runtime/default", "docker/default"],
    Localhost: [`${localPrefix}${profile.localhostProfile ?? ""}`],
  };
  if (expected[profile.type]?.includes(value) !== false) return;
  const isName = profile.type === "Localhost" && value.startsWith(localPrefix);
  if (isName) yield forbidden([...path, "localhostProfile"], "seccomp profile in annotation and field must match");
  else yield forbidden([...path, "type"], "seccomp type in annotation and field must match");
}
