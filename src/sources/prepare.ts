import type { ConfigMapManifest, PodManifest, SecretManifest } from "../api/pod.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import type { DecodedManifest, DecodedPod, DecodeResult } from "./decode.ts";
import { withDefaults } from "./defaults.ts";
import type { FieldError } from "./field-errors.ts";
import { ManifestError, type Origin } from "../yaml/manifest-error.ts";
import { valueAt } from "./schema-errors.ts";
import { podWarnings } from "./pod-warnings.ts";
import { isEcho } from "./unknown-fields.ts";
import { findUnsupported } from "./unsupported.ts";
import { validatePod } from "./validate.ts";
import { validateConfigMap, validateSecret } from "./validate-objects.ts";
import {
  validateClaim,
  validateClaimTemplates,
  validateDriver,
  validatePersistentVolume,
  validateStorageClass,
} from "./validate-storage.ts";

/** Something decoded that passed every check, with where it came from. */
export interface Checked<M> {
  readonly manifest: M;
  readonly origin: Origin;
}

export interface CheckedPod extends Checked<PodManifest> {
  /** What is allowed and hardly meant. */
  readonly warnings: readonly ManifestError[];
}

export interface PreparedManifests {
  /** With defaults. */
  readonly pods: readonly CheckedPod[];
  readonly configMaps: readonly Checked<ConfigMapManifest>[];
  readonly secrets: readonly Checked<SecretManifest>[];
  /** What is behind claims, and the claims. */
  readonly storage: readonly Checked<StorageManifest>[];
  readonly errors: readonly ManifestError[];
}

/** Fills in the defaults and checks everything; an object with an error is left out and the others are given. */
export function prepareManifests(objects: readonly DecodedManifest[]): PreparedManifests {
  const pods: CheckedPod[] = [];
  const configMaps: Checked<ConfigMapManifest>[] = [];
  const secrets: Checked<SecretManifest>[] = [];
  const storage: Checked<StorageManifest>[] = [];
  const errors: ManifestError[] = [];
  for (const object of objects) {
    const { origin } = object;
    const found = problemsOf(object);
    if (found.length > 0) {
      errors.push(...found);
      continue;
    }
    if (object.kind === "Pod") {
      const warnings = toManifestErrors(origin, podWarnings(object.manifest));
      pods.push({ manifest: withDefaults(object.manifest), origin, warnings });
    } else if (object.kind === "ConfigMap") configMaps.push({ manifest: object.manifest, origin });
    else if (object.kind === "Secret") secrets.push({ manifest: object.manifest, origin });
    else storage.push({ manifest: object.manifest, origin });
  }
  return { pods, configMaps, secrets, storage, errors };
}

/** What else is wrong with objects that have unknown fields. */
export function furtherErrors({ flawed }: Pick<DecodeResult, "flawed">): ManifestError[] {
  return flawed.flatMap(({ object, unknown }) => problemsOf(object).filter((problem) => !isEcho(problem, unknown)));
}

function problemsOf(object: DecodedManifest): ManifestError[] {
  switch (object.kind) {
    case "Pod":
      return podProblems(object);
    case "ConfigMap":
      return toManifestErrors(object.origin, validateConfigMap(object.manifest));
    case "Secret":
      return toManifestErrors(object.origin, validateSecret(object.manifest));
    default:
      return toManifestErrors(object.origin, [...storageProblems(object.manifest)]);
  }
}

function storageProblems(manifest: StorageManifest): Iterable<FieldError> {
  switch (manifest.kind) {
    case "PersistentVolumeClaim":
      return validateClaim(manifest);
    case "PersistentVolume":
      return validatePersistentVolume(manifest);
    case "StorageClass":
      return validateStorageClass(manifest);
    case "CSIDriver":
      return validateDriver(manifest);
  }
}

function podProblems(pod: DecodedPod): ManifestError[] {
  const invalid = withoutEchoes(pod.manifest, validatePod(withDefaults(pod.manifest)));
  const templates = validateClaimTemplates(pod.manifest);
  return toManifestErrors(pod.origin, [...invalid, ...templates, ...findUnsupported(pod.manifest)]);
}

/** Defaults copy values, e.g. a limit to the request: a problem is reported at its origin. */
function withoutEchoes(pod: PodManifest, errors: readonly FieldError[]): FieldError[] {
  const isWritten = ({ path }: FieldError): boolean => valueAt(pod, path) !== undefined;
  const written = new Set(errors.filter(isWritten).map(({ detail }) => detail));
  return errors.filter((error) => {
    return isWritten(error) || !error.detail.startsWith("Invalid value: ") || !written.has(error.detail);
  });
}

function toManifestErrors(origin: Origin, errors: readonly FieldError[]): ManifestError[] {
  return errors
    .map(({ path, detail }) => ManifestError.at(origin, path, detail))
    .toSorted((a, b) => (a.position?.line ?? 0) - (b.position?.line ?? 0));
}

/** `Pod default/web`, `PersistentVolume disk`: how requests and errors name an object. */
export function objectName({
  kind,
  metadata,
}: Pick<PodManifest | ConfigMapManifest | SecretManifest | StorageManifest, "kind" | "metadata">): string {
  const { namespace, name = "" } = metadata;
  const isOfNone = kind === "PersistentVolume" || kind === "StorageClass" || kind === "CSIDriver";
  return isOfNone ? `${kind} ${name}` : `${kind} ${namespace || "default"}/${name}`;
}

/** An error for every object whose kind, namespace and name another one has, naming both places. */
export function duplicateErrors(prepared: Omit<PreparedManifests, "errors">): ManifestError[] {
  const first = new Map<string, Origin>();
  const errors: ManifestError[] = [];
  for (const { manifest, origin } of [
    ...prepared.pods,
    ...prepared.configMaps,
    ...prepared.secrets,
    ...prepared.storage,
  ]) {
    const key = objectName(manifest);
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, origin);
      continue;
    }
    const { line } = other.locate(["metadata", "name"]);
    const detail = `Duplicate value: the ${key} is also at ${other.file}:${line}`;
    errors.push(ManifestError.at(origin, ["metadata", "name"], detail));
  }
  return errors;
}
