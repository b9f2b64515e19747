import { VolumeError } from "../runtime/volume-error.ts";

/** A problem that ends with something that is known here, such as a driver's registration: the retry follows at once. */
export class AwaitedError extends VolumeError {
  /** Resolves when it is worth another try. */
  readonly until: Promise<void>;

  constructor(message: string, until: Promise<void>, options?: ErrorOptions) {
    super(message, options);
    this.name = "AwaitedError";
    this.until = until;
  }
}
