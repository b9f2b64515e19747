/** The messages of containerd and CRI-O for a volumeMount with mountPropagation on a private mount. */
const notShared = /is mounted on "?([^"\s]+)"? but it is not a shared(?: or slave)? mount/u;

/** A runtime's reason why a container cannot be created, with a remedy where one is known. */
export function withRemedy(message: string): string {
  const mount = notShared.exec(message)?.[1];
  if (mount === undefined) return message;
  return `${message}; mountPropagation requires a shared mount: mount --make-rshared ${mount}`;
}
