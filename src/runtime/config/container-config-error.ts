/**
 * A container or sandbox that can't be created as its pod is written. A container waits with `reason`; nothing changes
 * until the pod, an object that it refers to, or the image does.
 */
export class ContainerConfigError extends Error {
  readonly reason = "CreateContainerConfigError";
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ContainerConfigError";
  }
}

/** Whether there is an object of that name can't be said now: what was made of it before is the best that is known. */
export class NotKnownYetError extends ContainerConfigError {}
