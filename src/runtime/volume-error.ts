/** Volumes of a pod that can't be had. The pod waits; another try comes with the next look or when an object changes. */
export class VolumeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "VolumeError";
  }
}

/** The API server can't be asked at the moment: what a volume holds is the best that is known. */
export class NotNowError extends VolumeError {}
