import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { type ContainerEdits, mergeEdits } from "./container-edits.ts";

/**
 * Gives containers something of the node beyond what their spec says (upstream: the internal container lifecycle and
 * GetResources of the container manager). What it promises a pod it reserves when the pod is admitted (the admission
 * chain's `reserve`), and gives back as one of the pod's holdings.
 */
export interface ResourceManager {
  /** For messages: `device manager`. */
  readonly name: string;
  /**
   * What the container gets, for its start and again for each resize: the same answer for the same pod and container until the
   * pod is gone. Asked often, so it answers from memory.
   */
  edits(pod: Pod, container: Container): ContainerEdits;
}

/** Of what all managers give a container. */
export interface ContainerEditor {
  /** @throws EditConflictError */
  edits(pod: Pod, container: Container): ContainerEdits;
}

/** All resource managers of a node, as one. */
export function editorOf(managers: readonly ResourceManager[]): ContainerEditor {
  return {
    edits: (pod, container) =>
      mergeEdits(managers.map((manager) => ({ manager: manager.name, edits: manager.edits(pod, container) }))),
  };
}
