/** Waiting reasons of a container whose image is unavailable (upstream's pkg/kubelet/images). */
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
  /** Monotonic ms before which another attempt only meets the back-off. */
  readonly retryAtMs?: number | undefined;
}

/** The image is unavailable; `reason` and `message` are those of the container's waiting state. */
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
