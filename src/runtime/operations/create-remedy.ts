/** The messages of containerd and CRI-O for a volumeMount with mountPropagation on a private mount. */
const notShared = /is mounted on "?([^"\s]+)"? but it is not a shared(?: or slave)? mount/u;

/**
 * The messages of containerd before 2.1 and CRI-O before 1.31 for a mount without a path on the node, which only an image
 * volume has: they do not know its image.
 */
const noImageMounts = /failed to (?:mkdir|stat|resolve symlink) ""|mount\.HostPath is empty/u;

/** A runtime's reason why a container cannot be created, with a remedy where one is known. */
export function withRemedy(message: string): string {
  const mount = notShared.exec(message)?.[1];
  if (mount !== undefined) {
    return `${message}; mountPropagation requires a shared mount: mount --make-rshared ${mount}`;
  }
  if (!noImageMounts.test(message)) return message;
  return `${message}; the container runtime does not support image volumes: containerd does from 2.1 on, CRI-O from 1.31 on`;
}
