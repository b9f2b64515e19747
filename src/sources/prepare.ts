import type { ConfigMapManifest, PodManifest, SecretManifest } from "../api/pod.ts";
import type { DecodedManifest, DecodedPod } from "./decode.ts";
import { withDefaults } from "./defaults.ts";
import type { FieldError } from "./field-errors.ts";
import { ManifestError, type Origin } from "./manifest-error.ts";
import { findUnsupported } from "./unsupported.ts";
import { validatePod } from "./validate.ts";
import { validateConfigMap, validateSecret } from "./validate-objects.ts";

/** Something decoded that passed every check, with where it came from. */
export interface Checked<M> {
  readonly manifest: M;
  readonly origin: Origin;
}

export interface PreparedManifests {
  /** With defaults. */
  readonly pods: readonly Checked<PodManifest>[];
  readonly configMaps: readonly Checked<ConfigMapManifest>[];
  readonly secrets: readonly Checked<SecretManifest>[];
  readonly errors: readonly ManifestError[];
}

/** Fills in the defaults and checks everything; an object with an error is left out and the others are given. */
export function prepareManifests(objects: readonly DecodedManifest[]): PreparedManifests {
  const pods: Checked<PodManifest>[] = [];
  const configMaps: Checked<ConfigMapManifest>[] = [];
  const secrets: Checked<SecretManifest>[] = [];
  const errors: ManifestError[] = [];
  for (const object of objects) {
    const { origin } = object;
    const found = problemsOf(object);
    if (found.length > 0) {
      errors.push(...found);
      continue;
    }
    if (object.kind === "Pod") pods.push({ manifest: withDefaults(object.manifest), origin });
    else if (object.kind === "ConfigMap") configMaps.push({ manifest: object.manifest, origin });
    else secrets.push({ manifest: object.manifest, origin });
  }
  return { pods, configMaps, secrets, errors };
}

function problemsOf(object: DecodedManifest): ManifestError[] {
  switch (object.kind) {
    case "Pod":
      return podProblems(object);
    case "ConfigMap":
      return toManifestErrors(object.origin, validateConfigMap(object.manifest));
    case "Secret":
      return toManifestErrors(object.origin, validateSecret(object.manifest));
  }
}

function podProblems(pod: DecodedPod): ManifestError[] {
  const invalid = validatePod(withDefaults(pod.manifest));
  return toManifestErrors(pod.origin, [...invalid, ...findUnsupported(pod.manifest)]);
}

function toManifestErrors(origin: Origin, errors: readonly FieldError[]): ManifestError[] {
  return errors
    .map(({ path, detail }) => ManifestError.at(origin, path, detail))
    .toSorted((a, b) => (a.position?.line ?? 0) - (b.position?.line ?? 0));
}

/** An error for every object whose kind, namespace and name another one has, naming both places. */
export function duplicateErrors(prepared: Omit<PreparedManifests, "errors">): ManifestError[] {
  const first = new Map<string, Origin>();
  const errors: ManifestError[] = [];
  for (const { manifest, origin } of [...prepared.pods, ...prepared.configMaps, ...prepared.secrets]) {
    const name = `${manifest.metadata.namespace || "default"}/${manifest.metadata.name ?? ""}`;
    const key = `${manifest.kind} ${name}`;
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, origin);
      continue;
    }
    const { line } = other.locate(["metadata", "name"]);
    const detail = `Duplicate value: the ${manifest.kind} ${name} is also at ${other.file}:${line}`;
    errors.push(ManifestError.at(origin, ["metadata", "name"], detail));
  }
  return errors;
}
