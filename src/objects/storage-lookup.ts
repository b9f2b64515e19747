import type { ObjectVersion } from "../api-client/resource.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { VolumeAttachment } from "../api/volume-attachment.ts";

/**
 * The objects behind claims, read one by one: a node may not list or watch them. Methods reject with a
 * StorageLookupError, or with the signal's reason.
 */
export interface StorageLookup {
  claim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim>;
  persistentVolume(name: string, signal: AbortSignal): Promise<PersistentVolume>;
  /** Undefined: it still has the version that was seen. */
  changedVolume(name: string, seen: ObjectVersion, signal: AbortSignal): Promise<PersistentVolume | undefined>;
  attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment>;
  /** @param patch a merge patch; with a resource version only of that claim */
  patchClaimStatus(namespace: string, name: string, patch: object, signal: AbortSignal): Promise<PersistentVolumeClaim>;
}

interface LookupErrorOptions extends ErrorOptions {
  readonly isMissing?: boolean;
}

/** An object that the API server does not have, or cannot give now. */
export class StorageLookupError extends Error {
  /** The pause that the server requests, milliseconds; 0: none. */
  readonly pauseMs: number;
  /** The server has no such object. */
  readonly isMissing: boolean;

  /** @param message the server's own words */
  constructor(message: string, pauseMs: number, { isMissing = false, ...options }: LookupErrorOptions = {}) {
    super(message, options);
    this.name = "StorageLookupError";
    this.pauseMs = pauseMs;
    this.isMissing = isMissing;
  }
}
