import type { LabelSelector, ObjectMeta } from "../api/meta.ts";
import type { VolumeManifest } from "../api/storage-manifest.ts";
import { shortList } from "../base/short-list.ts";
import type { z } from "zod";
import { matchesTerm } from "../pods/node-affinity.ts";
import { parseQuantity, type Quantity } from "../resources/quantity.ts";
import { isBound, type KeptClaim, type StorageState } from "./kept-claim.ts";

/** What a claim is bound to. */
export type Binding =
  | { readonly kind: "volume"; readonly name: string }
  /** Its own directory in the state directory. */
  | { readonly kind: "directory" }
  /** Not bound yet. */
  | { readonly kind: "none"; readonly why: string };

/** Volumes that a reason names at most. */
const listed = 3;

const small = "requested PV is too small";

const isDefaultClass = "storageclass.kubernetes.io/is-default-class";

/**
 * Decides the binding of an unbound claim as upstream's binder does (persistentvolume controller, syncUnboundClaim):
 * the volume that it names, or that is reserved for it, or else the smallest match. There is no provisioner: a claim
 * that upstream would provision gets a directory. Pure.
 */
export function bindClaim(claim: KeptClaim, state: StorageState): Binding {
  const { volumeName } = claim.spec;
  if (volumeName !== undefined) return bindToNamed(claim, volumeName, state);
  const found = bestVolume(claim, state);
  if (found !== undefined) return { kind: "volume", name: nameOf(found) };
  const needed = volumeNeeded(claim, state);
  if (needed === undefined) return { kind: "directory" };
  const why = `no persistent volumes available for this claim and ${needed.because}`;
  const refusals = refusalsOf(claim, state);
  const named = refusals.length === 0 ? why : `${why}: ${shortList(refusals, listed, "; ")}`;
  return { kind: "none", why: needed.remedy === undefined ? named : `${named}; ${needed.remedy}` };
}

/** The unbound claims in binding order: first those that name a volume. Pure. */
export function unboundClaims(claims: Iterable<KeptClaim>): KeptClaim[] {
  const rank = ({ metadata, spec }: KeptClaim): string => {
    return `${spec.volumeName === undefined ? 1 : 0} ${metadata.creationTimestamp} ${metadata.namespace}/${metadata.name}`;
  };
  return [...claims].filter((claim) => !isBound(claim)).toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

interface VolumeNeeded {
  readonly because: string;
  /** Undefined: a volume, or a change that the reason makes plain. */
  readonly remedy?: string;
}

/** Why a claim gets no directory; undefined: it gets one. */
function volumeNeeded(claim: KeptClaim, state: StorageState): VolumeNeeded | undefined {
  // The data is expected on a volume: an empty directory instead would go unnoticed.
  if ([...state.volumes.values()].some((volume) => isKeptFor(volume, claim))) {
    return { because: "a volume is reserved for it by claimRef", remedy: "correct the claim or the reserved volume" };
  }
  if (claim.spec.selector !== undefined) return { because: "a selector is set" };
  if (claim.spec.storageClassName === "") return { because: "no storage class is set" };
  const name = className(claim, state);
  // There are only classes without a provisioner.
  if (state.classes.has(name)) return { because: `storage class "${name}" has no provisioner` };
  const ofClass = [...state.volumes.values()].filter((volume) => isOfClass(volume, claim, state));
  if (name !== "") return ofClass.length === 0 ? undefined : { because: `storage class "${name}" has volumes` };
  // Most claims have no class. Those of others must not keep this one from a directory.
  if (!ofClass.some((volume) => isFree(volume, claim, state))) return undefined;
  return {
    because: "there are free volumes without a storage class",
    remedy: "correct the claim or the volume, or set a storageClassName that no volume has, for a directory",
  };
}

/** Why none of the volumes that a claim may wait for is bound to it, first those that are reserved for it. */
function refusalsOf(claim: KeptClaim, state: StorageState): string[] {
  const awaited = [...state.volumes.values()].filter((volume) => isAwaited(volume, claim, state));
  const free = awaited.filter((volume) => isFree(volume, claim, state));
  // Without a class it waits for the free ones alone.
  return (className(claim, state) === "" && free.length > 0 ? free : awaited)
    .toSorted((a, b) => Number(isKeptFor(b, claim)) - Number(isKeptFor(a, claim)) || (nameOf(a) < nameOf(b) ? -1 : 1))
    .map((volume) => `volume "${nameOf(volume)}": ${refusal(volume, claim, state) ?? ""}`);
}

/** Why a claim that names no volume does not get this one; undefined: it may. */
function refusal(volume: VolumeManifest, claim: KeptClaim, state: StorageState): string | undefined {
  const isKept = isKeptFor(volume, claim);
  if (!isFree(volume, claim, state)) {
    return volume.spec.claimRef === undefined || isKept
      ? "already bound to a different claim"
      : "reserved for a different claim by its claimRef";
  }
  const { accessModes: has = [], capacity } = volume.spec;
  // Of a reserved volume upstream compares nothing but the size, and the mode, which is never Block here.
  const problem = isKept ? tooSmall(volume, claim) : mismatch(volume, claim, state);
  if (problem === small) return `${problem} (${capacity?.["storage"] ?? 0})`;
  if (problem === "incompatible accessMode") return `${problem} (${has.join(", ")})`;
  if (problem !== undefined) return problem;
  if (!isOnNode(volume, state)) return "nodeAffinity does not match this node";
  return isKept || isSelected(volume.metadata, claim.spec.selector) ? undefined : "labels do not match the selector";
}

function bindToNamed(claim: KeptClaim, name: string, state: StorageState): Binding {
  const none = (why: string): Binding => ({ kind: "none", why });
  const volume = state.volumes.get(name);
  if (volume === undefined) return none(`volume "${name}" not found`);
  if (!isFree(volume, claim, state)) return none(`volume "${name}" already bound to a different claim.`);
  const problem = mismatch(volume, claim, state);
  if (problem !== undefined) return none(`Cannot bind to requested volume "${name}": ${problem}`);
  return { kind: "volume", name };
}

/** Why a volume does not match a claim (upstream: checkVolumeSatisfyClaim). */
function mismatch(volume: VolumeManifest, claim: KeptClaim, state: StorageState): string | undefined {
  const { spec } = volume;
  const problem = tooSmall(volume, claim);
  if (problem !== undefined) return problem;
  if (!isOfClass(volume, claim, state)) return "storageClassName does not match";
  if ((spec.volumeMode ?? "Filesystem") !== (claim.spec.volumeMode ?? "Filesystem")) return "incompatible volumeMode";
  const modes = spec.accessModes ?? [];
  if (!(claim.spec.accessModes ?? []).every((mode) => modes.includes(mode))) return "incompatible accessMode";
  return undefined;
}

function tooSmall(volume: VolumeManifest, claim: KeptClaim): typeof small | undefined {
  return size(volume).compare(requested(claim)) < 0 ? small : undefined;
}

function bestVolume(claim: KeptClaim, state: StorageState): VolumeManifest | undefined {
  const fitting = [...state.volumes.values()].filter((volume) => refusal(volume, claim, state) === undefined);
  const order = (a: VolumeManifest, b: VolumeManifest): number =>
    Number(isKeptFor(b, claim)) - Number(isKeptFor(a, claim)) ||
    (a.spec.accessModes?.length ?? 0) - (b.spec.accessModes?.length ?? 0) ||
    size(a).compare(size(b)) ||
    (nameOf(a) < nameOf(b) ? -1 : 1);
  return fitting.toSorted(order)[0];
}

/** Neither bound to nor reserved for another claim. */
function isFree(volume: VolumeManifest, claim: KeptClaim, { claims }: StorageState): boolean {
  const name = nameOf(volume);
  if ([...claims.values()].some((other) => isBound(other) && other.spec.volumeName === name)) return false;
  return volume.spec.claimRef === undefined || isKeptFor(volume, claim);
}

/** The UID in a volume's claimRef belongs to another cluster's claim, so only names are compared. */
function isKeptFor({ spec: { claimRef } }: VolumeManifest, { metadata }: KeptClaim): boolean {
  return claimRef?.name === metadata.name && (claimRef.namespace ?? "default") === metadata.namespace;
}

function isOnNode({ spec }: VolumeManifest, { nodeLabels }: StorageState): boolean {
  const required = spec.nodeAffinity?.required;
  return (
    required === undefined ||
    required.nodeSelectorTerms.some((term) => matchesTerm(term, { name: "", labels: nodeLabels }))
  );
}

/** Whether labels match a selector; without one every volume matches. */
function isSelected({ labels = {} }: ObjectMeta, selector: z.infer<typeof LabelSelector> | undefined): boolean {
  if (selector === undefined) return true;
  const equal = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => {
    return { key, operator: "In", values: [value] };
  });
  return [...equal, ...(selector.matchExpressions ?? [])].every(({ key, operator, values = [] }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (operator) {
      case "In":
        return value !== undefined && values.includes(value);
      case "NotIn":
        return value === undefined || !values.includes(value);
      case "Exists":
        return value !== undefined;
      default:
        return value === undefined;
    }
  });
}

/**
 * Whether an unbound claim may wait for a volume: the volume is reserved for it, or has its class. Without that volume
 * the claim would get a directory. Pure.
 */
export function isAwaited(volume: VolumeManifest, claim: KeptClaim, state: Pick<StorageState, "classes">): boolean {
  return isKeptFor(volume, claim) || isOfClass(volume, claim, state);
}

function isOfClass({ spec }: VolumeManifest, claim: KeptClaim, state: Pick<StorageState, "classes">): boolean {
  return (spec.storageClassName ?? "") === className(claim, state);
}

/** A claim without a class has the default one. */
function className({ spec }: KeptClaim, { classes }: Pick<StorageState, "classes">): string {
  if (spec.storageClassName !== undefined) return spec.storageClassName;
  const found = [...classes.values()].filter(({ metadata }) => metadata.annotations?.[isDefaultClass] === "true");
  return found.map(nameOf).toSorted()[0] ?? "";
}

function nameOf({ metadata }: { readonly metadata: ObjectMeta }): string {
  return metadata.name ?? "";
}

function size({ spec }: VolumeManifest): Quantity {
  return parseQuantity(spec.capacity?.["storage"] ?? 0);
}

function requested({ spec }: KeptClaim): Quantity {
  return parseQuantity(spec.resources?.requests?.["storage"] ?? 0);
}
