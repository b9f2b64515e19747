/**
 * Volumes of a pod that cannot be set up. The pod waits; a retry follows with the next sync or when an object changes.
 */
export class VolumeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "VolumeError";
  }
}

/** The API server is unreachable for now: the volume keeps its last known content. */
export class NotNowError extends VolumeError {}
