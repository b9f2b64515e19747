/**
 * A container or sandbox that cannot be created as its pod is written. A container waits with `reason`; nothing changes
 * until the pod, an object that it refers to, or the image does.
 */
export class ContainerConfigError extends Error {
  readonly reason = "CreateContainerConfigError";
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ContainerConfigError";
  }
}

/** Whether an object exists is unknown for now: the last known content stays in use. */
export class NotKnownYetError extends ContainerConfigError {}
