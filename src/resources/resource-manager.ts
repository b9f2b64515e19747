import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { type ContainerEdits, mergeEdits } from "./container-edits.ts";

/**
 * Gives containers resources of the node beyond their spec (upstream: the internal container lifecycle and GetResources
 * of the container manager). It reserves them when the pod is admitted (the admission chain's `reserve`), and releases
 * them as one of the pod's holdings.
 */
export interface ResourceManager {
  /** For messages: `device manager`. */
  readonly name: string;
  /**
   * The container's edits, for its start and for each resize. Must be the same for a pod and container until the pod is
   * removed. Called often, so it must not do I/O.
   */
  edits(pod: Pod, container: Container): ContainerEdits;
}

/** Merges all managers' edits of a container. */
export interface ContainerEditor {
  /** @throws EditConflictError */
  edits(pod: Pod, container: Container): ContainerEdits;
}

export function editorOf(managers: readonly ResourceManager[]): ContainerEditor {
  return {
    edits: (pod, container) =>
      mergeEdits(managers.map((manager) => ({ manager: manager.name, edits: manager.edits(pod, container) }))),
  };
}
