import { isDeepStrictEqual } from "node:util";
import type { Pod } from "../api/pod.ts";
import type { ClaimManifest, StorageManifest, VolumeManifest } from "../api/storage-manifest.ts";
import type { ObjectPlan } from "../server/local-api.ts";
import type { FieldError } from "../sources/field-errors.ts";
import type { Checked } from "../sources/prepare.ts";
import { objectKey } from "../sources/run-objects.ts";
import type { StoragePreview } from "../sources/run-storage.ts";
import type { RunObject } from "../sources/run-store.ts";
import { ManifestError } from "../yaml/manifest-error.ts";
import { bindClaim, unboundClaims } from "./bind.ts";
import { claimsOf } from "./claim-views.ts";
import {
  boundTo,
  claimUpdateProblems,
  type CommandText,
  isBound,
  isSameClaim,
  type KeptClaim,
  ownVolumeName,
  type StorageState,
  updatedClaim,
} from "./kept-claim.ts";

/**
 * Why objects cannot be accepted. Pure.
 * @param removing claims that are being removed
 * @param command a command for the user's shell
 */
export function updateProblems(
  state: StorageState,
  objects: readonly Checked<StorageManifest>[],
  removing: ReadonlySet<string>,
  command: CommandText,
): ManifestError[] {
  return objects.flatMap(({ manifest, origin }) => {
    return problemsOf(state, manifest, removing, command).map(({ path, detail }) =>
      ManifestError.at(origin, path, detail),
    );
  });
}

function problemsOf(
  state: StorageState,
  manifest: StorageManifest,
  removing: ReadonlySet<string>,
  command: CommandText,
): FieldError[] {
  if (manifest.kind === "PersistentVolumeClaim") {
    const kept = state.claims.get(objectKey(manifest.metadata));
    if (removing.has(objectKey(manifest.metadata))) {
      return [{ path: ["metadata", "name"], detail: "Forbidden: the claim of this name is being removed; try again" }];
    }
    return kept === undefined ? [] : claimUpdateProblems(kept, manifest, command);
  }
  if (manifest.kind !== "PersistentVolume") return [];
  const { name = "" } = manifest.metadata;
  const kept = state.volumes.get(name);
  if (kept === undefined || isSameSource(kept, manifest)) return [];
  const user = [...state.claims.values()].find((claim) => isBound(claim) && claim.spec.volumeName === name);
  if (user === undefined) return [];
  const detail = "Forbidden: spec.persistentvolumesource is immutable after creation";
  return [{ path: ["spec"], detail: `${detail}; claim ${objectKey(user.metadata)} is bound to it` }];
}

function isSameSource({ spec: a }: VolumeManifest, { spec: b }: VolumeManifest): boolean {
  return isDeepStrictEqual([a.local, a.hostPath, a.nfs, a.csi], [b.local, b.hostPath, b.nfs, b.csi]);
}

/** An object as stored. */
export type KeptObject = KeptClaim | Exclude<StorageManifest, ClaimManifest>;

export function isKept(manifest: RunObject): manifest is KeptObject {
  const { kind, metadata } = manifest;
  if (kind === "Pod" || kind === "ConfigMap" || kind === "Secret" || !metadata.name) return false;
  return kind !== "PersistentVolumeClaim" || (Boolean(metadata.namespace) && Boolean(metadata.uid));
}

export interface StorageChange {
  readonly state: StorageState;
  /** The objects to write. */
  readonly changed: readonly KeptObject[];
  /** In the order of the request's objects. */
  readonly changes: readonly ObjectPlan["change"][];
}

/** The changes that objects cause. Pure but for `newClaim`. */
export function changedState(
  state: StorageState,
  objects: readonly StorageManifest[],
  newClaim: (manifest: ClaimManifest) => KeptClaim,
): StorageChange {
  const claims = new Map(state.claims);
  const volumes = new Map(state.volumes);
  const classes = new Map(state.classes);
  const drivers = new Map(state.drivers);
  const changed: KeptObject[] = [];
  const changes = objects.map((manifest): ObjectPlan["change"] => {
    if (manifest.kind === "PersistentVolumeClaim") {
      const key = objectKey(manifest.metadata);
      const kept = claims.get(key);
      if (kept !== undefined && isSameClaim(kept, manifest)) return "unchanged";
      const claim = kept === undefined ? newClaim(manifest) : updatedClaim(kept, manifest);
      claims.set(key, claim);
      changed.push(claim);
      return kept === undefined ? "added" : "updated";
    }
    const { name = "" } = manifest.metadata;
    const kept = { PersistentVolume: volumes, StorageClass: classes, CSIDriver: drivers }[manifest.kind].get(name);
    if (isDeepStrictEqual(kept, manifest)) return "unchanged";
    if (manifest.kind === "PersistentVolume") volumes.set(name, manifest);
    else if (manifest.kind === "StorageClass") classes.set(name, manifest);
    else drivers.set(name, manifest);
    changed.push(manifest);
    return kept === undefined ? "added" : "updated";
  });
  return { state: { ...state, claims, volumes, classes, drivers }, changed, changes };
}

export interface PreviewInput {
  readonly objects: readonly StorageManifest[];
  readonly pods: readonly Pod[];
  readonly newClaim: (manifest: ClaimManifest) => KeptClaim;
  /** The path of a claim's directory. */
  readonly placeOf: (claim: KeptClaim) => string;
}

/** The bindings that would result, and what pods would wait for. Pure but for `newClaim`. */
export function previewStorage(
  before: StorageState,
  { objects, pods, newClaim, placeOf }: PreviewInput,
): StoragePreview {
  const { state, changes } = changedState(before, objects, newClaim);
  const claims = new Map(state.claims);
  const after = { ...state, claims };
  const whys = new Map<string, string>();
  for (const claim of unboundClaims(state.claims.values())) {
    const key = objectKey(claim.metadata);
    const binding = bindClaim(claim, after);
    if (binding.kind === "none") whys.set(key, binding.why);
    else claims.set(key, boundTo(claim, binding.kind === "volume" ? binding.name : ownVolumeName(claim)));
  }
  const detailOf = (key: string): string => {
    const claim = claims.get(key);
    const volume = claim && state.volumes.get(claim.spec.volumeName ?? "");
    if (claim === undefined || whys.has(key)) return `not bound: ${whys.get(key) ?? ""}`;
    return volume === undefined ? `in ${placeOf(claim)}` : `on PersistentVolume ${volume.metadata.name ?? ""}`;
  };
  const waits = pods.map((pod) =>
    claimsOf(pod).flatMap(({ key, isEphemeral }) => {
      if (isEphemeral) return [];
      if (!claims.has(key)) return [`claim ${key} does not exist; add the PersistentVolumeClaim to the manifests`];
      return whys.has(key) ? [`claim ${key} is ${detailOf(key)}`] : [];
    }),
  );
  const ephemeral = pods.flatMap((pod) =>
    claimsOf(pod)
      .filter(({ key, isEphemeral }) => isEphemeral && !claims.has(key))
      .map(({ key }) => ephemeralPlan(key)),
  );
  const plans = objects.map((manifest, index): ObjectPlan => {
    const { kind, metadata } = manifest;
    const { name = "", namespace } = metadata;
    const change = changes[index] ?? "unchanged";
    if (kind !== "PersistentVolumeClaim") return { kind, namespace: "", name, change };
    return { kind, namespace: namespace || "default", name, change, detail: detailOf(objectKey(metadata)) };
  });
  return { objects: [...plans, ...ephemeral], waits };
}

function ephemeralPlan(key: string): ObjectPlan {
  const [namespace = "", name = ""] = key.split("/");
  return { kind: "PersistentVolumeClaim", namespace, name, change: "added", detail: "is removed with its pod" };
}
