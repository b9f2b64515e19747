interface Containers<C, E> {
  readonly initContainers?: readonly C[] | undefined;
  readonly containers: readonly C[];
  readonly ephemeralContainers?: readonly E[] | undefined;
}

/** Every container of a pod's spec, in the order in which they come to be: init containers, regular ones, ephemeral ones. */
export function allContainers<C, E>({
  initContainers = [],
  containers,
  ephemeralContainers = [],
}: Containers<C, E>): (C | E)[] {
  return [...initContainers, ...containers, ...ephemeralContainers];
}
