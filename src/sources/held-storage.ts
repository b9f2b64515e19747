import { didYouMean } from "../base/did-you-mean.ts";
import type { ManifestError } from "../yaml/manifest-error.ts";
import type { LoadedManifests } from "./load.ts";

const storageKinds = ["PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIDriver"];

/**
 * Whether an error prevents accepting claims: it concerns, or may concern, an object that a claim would be bound to.
 * Without that object the claim would permanently get another volume. Pure.
 */
export function holdsStorage({ errors, storage }: Pick<LoadedManifests, "errors" | "storage">): boolean {
  return errors.some(({ kind }) => (kind === undefined ? storage.length > 0 : isOfStorage(kind)));
}

/** Kind of the object with the error. */
function isOfStorage(kind: NonNullable<ManifestError["kind"]>): boolean {
  return didYouMean(kind.replace(/List$/u, ""), storageKinds) !== undefined;
}
