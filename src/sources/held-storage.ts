import { didYouMean } from "../base/did-you-mean.ts";
import type { ManifestError } from "../yaml/manifest-error.ts";
import type { LoadedManifests } from "./load.ts";

const storageKinds = ["PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIDriver"];

/**
 * Whether an error keeps claims from being taken: it is, or may be, in what one of them would be bound to. A claim that is
 * bound without that gets another volume for good. Pure.
 */
export function holdsStorage({ errors, storage }: Pick<LoadedManifests, "errors" | "storage">): boolean {
  return errors.some(({ kind }) => (kind === undefined ? storage.length > 0 : isOfStorage(kind)));
}

/** Of the object that an error is in. */
function isOfStorage(kind: NonNullable<ManifestError["kind"]>): boolean {
  return didYouMean(kind.replace(/List$/u, ""), storageKinds) !== undefined;
}
