import { VolumeError } from "../runtime/volume-error.ts";

/** A problem whose end is observable, such as a driver's missing registration: the retry follows immediately. */
export class AwaitedError extends VolumeError {
  /** Resolves when a retry may succeed. */
  readonly until: Promise<void>;

  constructor(message: string, until: Promise<void>, options?: ErrorOptions) {
    super(message, options);
    this.name = "AwaitedError";
    this.until = until;
  }
}
