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
  const refusals = refusalsOfClass(claim, state);
  const needed = volumeNeeded(claim, state, refusals.length > 0);
  if (needed === undefined) return { kind: "directory" };
  const why = `no persistent volumes available for this claim and ${needed}`;
  return { kind: "none", why: refusals.length === 0 ? why : `${why}: ${shortList(refusals, listed, "; ")}` };
}

/** The unbound claims in binding order: first those that name a volume. Pure. */
export function unboundClaims(claims: Iterable<KeptClaim>): KeptClaim[] {
  const rank = ({ metadata, spec }: KeptClaim): string => {
    return `${spec.volumeName === undefined ? 1 : 0} ${metadata.creationTimestamp} ${metadata.namespace}/${metadata.name}`;
  };
  return [...claims].filter((claim) => !isBound(claim)).toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/**
 * Why a claim gets no directory; undefined: it gets one.
 * @param hasVolumes whether there are volumes of its class
 */
function volumeNeeded(claim: KeptClaim, state: StorageState, hasVolumes: boolean): string | undefined {
  if (claim.spec.selector !== undefined) return "a selector is set";
  if (claim.spec.storageClassName === "") return "no storage class is set";
  const name = className(claim, state);
  // There are only classes without a provisioner.
  if (state.classes.has(name)) return `storage class "${name}" has no provisioner`;
  // The data is expected on one of them: an empty directory instead would go unnoticed.
  return hasVolumes && name !== "" ? `storage class "${name}" has volumes` : undefined;
}

/** Why none of the volumes of a claim's class is bound to it. */
function refusalsOfClass(claim: KeptClaim, state: StorageState): string[] {
  return [...state.volumes.values()]
    .filter((volume) => isOfClass(volume, claim, state))
    .map((volume) => `volume "${nameOf(volume)}": ${refusal(volume, claim, state)}`)
    .toSorted();
}

function refusal(volume: VolumeManifest, claim: KeptClaim, state: StorageState): string {
  if (!isFree(volume, claim, state)) {
    return volume.spec.claimRef === undefined || isKeptFor(volume, claim)
      ? "already bound to a different claim"
      : "reserved for a different claim by its claimRef";
  }
  const { accessModes: has = [], capacity } = volume.spec;
  const problem = mismatch(volume, claim, state);
  switch (problem) {
    case "requested PV is too small":
      return `${problem} (${capacity?.["storage"] ?? 0})`;
    case "incompatible accessMode":
      return `${problem} (${has.join(", ")})`;
    case undefined:
      return isOnNode(volume, state) ? "labels do not match the selector" : "nodeAffinity does not match this node";
    default:
      return problem;
  }
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
  if (size(volume).compare(requested(claim)) < 0) return "requested PV is too small";
  if (!isOfClass(volume, claim, state)) return "storageClassName does not match";
  if ((spec.volumeMode ?? "Filesystem") !== (claim.spec.volumeMode ?? "Filesystem")) return "incompatible volumeMode";
  const modes = spec.accessModes ?? [];
  if (!(claim.spec.accessModes ?? []).every((mode) => modes.includes(mode))) return "incompatible accessMode";
  return undefined;
}

function bestVolume(claim: KeptClaim, state: StorageState): VolumeManifest | undefined {
  const fitting = [...state.volumes.values()].filter((volume) => {
    if (!isFree(volume, claim, state) || !isOnNode(volume, state)) return false;
    if (isKeptFor(volume, claim)) return size(volume).compare(requested(claim)) >= 0;
    return mismatch(volume, claim, state) === undefined && isSelected(volume.metadata, claim.spec.selector);
  });
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

/** Whether a volume has a claim's class. Pure. */
export function isOfClass({ spec }: VolumeManifest, claim: KeptClaim, state: Pick<StorageState, "classes">): boolean {
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
