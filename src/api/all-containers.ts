import type { Container } from "./container.ts";

interface Containers<C> {
  readonly initContainers?: readonly C[] | undefined;
  readonly containers: readonly C[];
}

interface WithEphemeral<C, E> extends Containers<C> {
  readonly ephemeralContainers?: readonly E[] | undefined;
}

/** Init containers and regular ones, in the order in which they come to be. */
export function containersOf<C>({ initContainers = [], containers }: Containers<C>): C[] {
  return [...initContainers, ...containers];
}

/** Every container of a pod's spec, in the order in which they come to be: init containers, regular ones, ephemeral ones. */
export function allContainers<C, E>(spec: WithEphemeral<C, E>): (C | E)[] {
  return [...containersOf<C | E>(spec), ...(spec.ephemeralContainers ?? [])];
}

/** Every container as people look for it: regular ones first, which are what the pod is for. */
export function listedContainers<C, E>(spec: WithEphemeral<C, E>): (C | E)[] {
  return [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])];
}

/** Containers that run as long as their pod: sidecars and regular containers. */
export function lastingContainers<C extends Pick<Container, "restartPolicy">>({
  initContainers = [],
  containers,
}: Containers<C>): C[] {
  return [...initContainers.filter(isSidecar), ...containers];
}

/** An init container that keeps running beside the regular ones (KEP-753). */
export function isSidecar({ restartPolicy }: Pick<Container, "restartPolicy">): boolean {
  return restartPolicy === "Always";
}
