import { isDeepStrictEqual } from "node:util";
import type { Pod } from "../api/pod.ts";
import type { ClaimManifest, StorageManifest, VolumeManifest } from "../api/storage-manifest.ts";
import type { ObjectPlan } from "../server/local-api.ts";
import type { FieldError } from "../sources/field-errors.ts";
import type { Checked } from "../sources/prepare.ts";
import { objectKey } from "../sources/run-objects.ts";
import type { StoragePreview } from "../sources/run-storage.ts";
import type { RunObject } from "../sources/run-store.ts";
import { claimOfDirectory } from "../volumes/claims.ts";
import { ManifestError } from "../yaml/manifest-error.ts";
import type { ClaimDirectories } from "./claim-directories.ts";
import { bindAll } from "./bind-all.ts";
import { type Binding, isAwaited } from "./bind.ts";
import { claimsOf } from "./claim-views.ts";
import {
  claimUpdateProblems,
  hasOwnDirectory,
  isBound,
  isSameClaim,
  type KeptClaim,
  type StorageState,
  updatedClaim,
} from "./kept-claim.ts";

type Directories = Pick<ClaimDirectories, "command" | "path">;

/**
 * Why objects cannot be accepted. Pure.
 * @param removing claims that are being removed
 */
export function updateProblems(
  state: StorageState,
  objects: readonly Checked<StorageManifest>[],
  removing: ReadonlySet<string>,
  directories: Directories,
): ManifestError[] {
  return objects.flatMap(({ manifest, origin }) => {
    return problemsOf(state, manifest, removing, directories).map(({ path, detail }) =>
      ManifestError.at(origin, path, detail),
    );
  });
}

function problemsOf(
  state: StorageState,
  manifest: StorageManifest,
  removing: ReadonlySet<string>,
  directories: Directories,
): FieldError[] {
  if (manifest.kind === "PersistentVolumeClaim") {
    const kept = state.claims.get(objectKey(manifest.metadata));
    if (removing.has(objectKey(manifest.metadata))) {
      return [{ path: ["metadata", "name"], detail: "Forbidden: the claim of this name is being removed; try again" }];
    }
    return kept === undefined ? [] : claimUpdateProblems(kept, manifest, (...words) => directories.command(...words));
  }
  if (manifest.kind !== "PersistentVolume") return [];
  const { name = "" } = manifest.metadata;
  const owner = claimOfOwnVolume(state.claims, name);
  const kept = owner === undefined ? state.volumes.get(name)?.spec : { local: { path: directories.path(owner) } };
  if (kept === undefined) return givenDirectoryProblems(manifest);
  if (isSameSource(kept, manifest.spec)) return [];
  const user = owner ?? [...state.claims.values()].find((claim) => isBound(claim) && claim.spec.volumeName === name);
  if (user === undefined) return [];
  const detail = "Forbidden: spec.persistentvolumesource is immutable after creation";
  return [{ path: ["spec"], detail: `${detail}; claim ${objectKey(user.metadata)} is bound to it` }];
}

/** The volume of a directory that `podwright volumes inspect` printed before its claim was removed, or elsewhere. */
function givenDirectoryProblems({ metadata }: VolumeManifest): FieldError[] {
  const claim = metadata.annotations?.[claimOfDirectory];
  if (claim === undefined) return [];
  const detail = `Forbidden: the volume was the directory of claim ${claim}, which is not kept here`;
  return [{ path: ["metadata", "name"], detail: `${detail}; omit the volume, and the claim gets a directory` }];
}

/** The claim whose own directory is the volume of that name, as `podwright volumes inspect` shows it. */
function claimOfOwnVolume(claims: StorageState["claims"], name: string): KeptClaim | undefined {
  return [...claims.values()].find((claim) => hasOwnDirectory(claim) && claim.spec.volumeName === name);
}

type Source = Pick<VolumeManifest["spec"], "local" | "hostPath" | "nfs" | "csi">;

function isSameSource(a: Source, b: Source): boolean {
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
    // It is kept with its claim: as a document of its own it would not be removed with the claim's data.
    if (manifest.kind === "PersistentVolume" && claimOfOwnVolume(state.claims, name) !== undefined) return "unchanged";
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

export interface UnusedObject {
  readonly kind: "PersistentVolume" | "CSIDriver" | "StorageClass";
  readonly name: string;
}

/** What no claim has or waits for: it can be forgotten when no pod is left. Pure. */
export function unusedObjects(state: StorageState): UnusedObject[] {
  const claims = [...state.claims.values()];
  // Without the volumes that it waits for, a claim would get a directory.
  const isUsed = (name: string, volume: VolumeManifest): boolean =>
    claims.some((claim) => claim.spec.volumeName === name || (!isBound(claim) && isAwaited(volume, claim, state)));
  const used = [...state.volumes].filter(([name, volume]) => isUsed(name, volume));
  const unused = [...state.volumes.keys()].filter((name) => !used.some(([each]) => each === name));
  const usedDrivers = new Set(used.map(([, { spec }]) => spec.csi?.driver));
  const drivers = [...state.drivers.keys()].filter((name) => !usedDrivers.has(name));
  const classes = claims.some((claim) => !isBound(claim)) ? [] : [...state.classes.keys()];
  const of = (kind: UnusedObject["kind"], names: readonly string[]) => names.map((name) => ({ kind, name }));
  return [...of("PersistentVolume", unused), ...of("CSIDriver", drivers), ...of("StorageClass", classes)];
}

/** Objects and pods that come to what is there. */
export interface ComingChange {
  readonly state: StorageState;
  readonly objects: readonly StorageManifest[];
  readonly pods: readonly Pod[];
  readonly newClaim: (manifest: ClaimManifest) => KeptClaim;
  readonly decide: (claim: KeptClaim, state: StorageState) => Binding;
}

/** The bindings that would result, and what pods would wait for. Pure but for `newClaim` and `decide`. */
export function previewStorage(
  { state: before, objects, pods, newClaim, decide }: ComingChange,
  directories: Directories,
): StoragePreview {
  const { state, changes } = changedState(before, objects, newClaim);
  const { claims, whys } = bindAll(state, decide);
  const detailOf = (key: string): string => {
    const claim = claims.get(key);
    const volume = claim && state.volumes.get(claim.spec.volumeName ?? "");
    if (claim === undefined || whys.has(key)) return `not bound: ${whys.get(key) ?? ""}`;
    return volume === undefined ? `in ${directories.path(claim)}` : `on PersistentVolume ${volume.metadata.name ?? ""}`;
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
