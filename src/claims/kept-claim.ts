import type { ObjectMeta } from "../api/meta.ts";
import type { ClaimManifest, ClassManifest, DriverManifest, VolumeManifest } from "../api/storage-manifest.ts";
import { canonicalJson } from "../sources/canonical-json.ts";
import { objectKey } from "../sources/run-objects.ts";
import type { FieldError } from "../sources/field-errors.ts";

const bindCompleted = "pv.kubernetes.io/bind-completed";
const boundByController = "pv.kubernetes.io/bound-by-controller";

/** A claim as stored: with its UID and, once bound, the annotations of upstream's binder. */
export type KeptClaim = ClaimManifest & {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
};

/** The inputs of binding. */
export interface StorageState {
  /** By `namespace/name`. */
  readonly claims: ReadonlyMap<string, KeptClaim>;
  /** By name. */
  readonly volumes: ReadonlyMap<string, VolumeManifest>;
  readonly classes: ReadonlyMap<string, ClassManifest>;
  readonly drivers: ReadonlyMap<string, DriverManifest>;
  /** Those of this node. */
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/**
 * A new claim. A UID, a binding or an owner in its document belongs to another cluster and is dropped.
 * @param owners the pod that it is removed with
 */
export function keptClaim(
  manifest: ClaimManifest,
  uid: string,
  createdAt: string,
  owners?: ObjectMeta["ownerReferences"],
): KeptClaim {
  const { spec, ...rest } = written(manifest);
  const metadata = { ...rest.metadata, ...(owners !== undefined && { ownerReferences: owners }) };
  const { name = "", namespace } = metadata;
  const named = { ...metadata, name, namespace: namespace || "default", uid, creationTimestamp: createdAt };
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: named, spec };
}

export function isBound({ metadata }: Pick<ClaimManifest, "metadata">): boolean {
  return metadata.annotations?.[bindCompleted] === "yes";
}

/** The claim bound to a volume. */
export function boundTo(claim: KeptClaim, volumeName: string): KeptClaim {
  const marks = { [bindCompleted]: "yes", ...(claim.spec.volumeName === undefined && { [boundByController]: "yes" }) };
  const annotations = { ...claim.metadata.annotations, ...marks };
  return { ...claim, metadata: { ...claim.metadata, annotations }, spec: { ...claim.spec, volumeName } };
}

/** The volume name of a claim without a PersistentVolume, in the form of upstream's provisioners. */
export function ownVolumeName({ metadata }: KeptClaim): string {
  return `pvc-${metadata.uid}`;
}

export function hasOwnDirectory(claim: KeptClaim): boolean {
  return isBound(claim) && claim.spec.volumeName === ownVolumeName(claim);
}

/** UID of the pod that an ephemeral volume's claim is removed with; undefined: it outlives pods. */
export function ownerOf({ metadata }: KeptClaim): string | undefined {
  return metadata.ownerReferences?.find(({ kind, controller }) => kind === "Pod" && controller === true)?.uid;
}

/** Whether a document equals the stored claim. */
export function isSameClaim(kept: KeptClaim, manifest: ClaimManifest): boolean {
  return contentOf(kept) === contentOf(manifest);
}

/** A command with the option that leads it to the state directory. */
export type CommandText = (...words: readonly [string, ...string[]]) => string;

/**
 * Why a document cannot change the claim of its name (upstream: ValidatePersistentVolumeClaimUpdate).
 * @param command a command for the user's shell
 */
export function claimUpdateProblems(kept: KeptClaim, manifest: ClaimManifest, command: CommandText): FieldError[] {
  if (ownerOf(kept) !== undefined && !isSameClaim(kept, manifest)) {
    return [{ path: ["metadata", "name"], detail: "Forbidden: the claim of this name belongs to a pod's volume" }];
  }
  if (!isBound(kept)) return [];
  const before: Readonly<Record<string, unknown>> = {
    ...defaulted(written(kept).spec),
    volumeName: kept.spec.volumeName,
  };
  // A document may name the volume that the claim got, or leave the choice to the binder.
  const { volumeName = kept.spec.volumeName, ...given } = defaulted(written(manifest).spec);
  const after: Readonly<Record<string, unknown>> = { ...given, volumeName };
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((field) => field !== "resources" && canonicalJson(before[field]) !== canonicalJson(after[field]))
    .toSorted();
  if (changed.length === 0) return [];
  const was = changed.map((field) => {
    return `${field} is ${before[field] === undefined ? "not set" : canonicalJson(before[field])} in the kept claim`;
  });
  const detail = `Forbidden: spec is immutable after creation except resources.requests: ${was.join(", ")}`;
  const removal = command("volumes", "rm", objectKey(kept.metadata));
  const remedy = `give it as it was, or start anew: '${removal}' removes the claim with its data`;
  return [{ path: ["spec"], detail: `${detail}; ${remedy}` }];
}

/** The claim after an update by a document: it stays bound. */
export function updatedClaim(kept: KeptClaim, manifest: ClaimManifest): KeptClaim {
  const { uid, creationTimestamp = "" } = kept.metadata;
  const claim = keptClaim(manifest, uid, creationTimestamp, kept.metadata.ownerReferences);
  const { volumeName } = kept.spec;
  return isBound(kept) && volumeName !== undefined ? boundTo(claim, volumeName) : claim;
}

/** With the API server's defaults, and without a selector that selects nothing. */
function defaulted({ selector, volumeMode = "Filesystem", ...spec }: ClaimManifest["spec"]): ClaimManifest["spec"] {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const isEmpty = Object.keys(matchLabels).length + matchExpressions.length === 0;
  return { ...spec, volumeMode, ...(!isEmpty && { selector }) };
}

/** A claim without the fields that only the node or another cluster's controllers set. */
function written({ metadata, spec }: ClaimManifest): {
  readonly metadata: ObjectMeta;
  readonly spec: ClaimManifest["spec"];
} {
  const { name, namespace, labels, annotations = {} } = metadata;
  const { [bindCompleted]: _done, [boundByController]: byController, ...own } = annotations;
  const { volumeName, ...rest } = spec;
  return {
    metadata: {
      name,
      namespace: namespace || "default",
      ...(labels !== undefined && { labels }),
      ...(Object.keys(own).length > 0 && { annotations: own }),
    },
    spec: { ...rest, ...(volumeName !== undefined && byController !== "yes" && { volumeName }) },
  };
}

function contentOf(claim: ClaimManifest): string {
  return canonicalJson(written(claim));
}
