/** Waiting reasons of a container whose image is not to be had (upstream's pkg/kubelet/images). */
export const imageErrorReasons = [
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "ImageInspectError",
  "InvalidImageName",
  "RegistryUnavailable",
  "SignatureValidationFailed",
] as const;

export type ImageErrorReason = (typeof imageErrorReasons)[number];

export interface ImageErrorOptions extends ErrorOptions {
  /** The journal entry that is the evidence. */
  readonly entry: number;
  /** Monotonic milliseconds before which another try only meets the back-off. */
  readonly retryAtMs?: number | undefined;
}

/** The image is not available; `reason` and `message` are those of the container's waiting state. */
export class ImageError extends Error {
  readonly reason: ImageErrorReason;
  readonly entry: number;
  readonly retryAtMs: number | undefined;
  constructor(reason: ImageErrorReason, message: string, options: ImageErrorOptions) {
    super(message, options);
    this.name = "ImageError";
    this.reason = reason;
    this.entry = options.entry;
    this.retryAtMs = options.retryAtMs;
  }
}
