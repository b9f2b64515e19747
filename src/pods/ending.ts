import type { Cause } from "../journal/entry.ts";
import type { ContainerGrace } from "../runtime/actions/pod-actions.ts";

/**
 * How a pod stops for good: everything that its worker, its checkpoint and its status need to know. Each kind of ending
 * has a constructor; its effects depend on these fields alone.
 */
export interface Ending {
  /** Code and message become the status's reason and message if the node fails the pod. */
  readonly cause: Cause;
  /**
   * The resulting pod status. failed: phase Failed with the ending's reason, beside each container's status. cutShort:
   * the same, unless all containers exit with 0: then the pod has succeeded, and needs no reason. refused: as failed,
   * without container statuses, since the node never admitted the pod. asContainers: derived from the containers.
   */
  readonly outcome: "failed" | "cutShort" | "refused" | "asContainers";
  /** The pod stays ended after a restart of podwright, even if a source still has it. */
  readonly lasts: boolean;
  /** Of one that lasts: only until the machine starts again. */
  readonly untilReboot?: boolean;
  readonly graceSeconds: number;
  /** Of containers with their own grace period. */
  readonly graces?: readonly ContainerGrace[];
  /** Message of condition DisruptionTarget; undefined: no disruption. */
  readonly disruption?: string | undefined;
  /** The phase that an earlier run reported of the pod's containers: the runtime may not have all of them any more. */
  readonly endedPhase?: "Succeeded" | "Failed" | undefined;
}

/** An ending that survives a restart of podwright. */
export type LastingEnding = Pick<Ending, "cause" | "outcome" | "disruption" | "untilReboot" | "endedPhase"> &
  Partial<Pick<Ending, "graceSeconds">>;

/**
 * No source has the pod any more, the API server deletes it, or it had ended before: the status derives from the
 * containers.
 */
export function unwanted(cause: Cause, graceSeconds: number): Ending {
  return { cause, outcome: "asContainers", lasts: false, graceSeconds };
}

/**
 * The pod's containers have all completed. It is recorded: after a restart, removed containers would look as if they
 * had never run.
 */
export function completed(cause: Cause, graceSeconds: number, graces: readonly ContainerGrace[] = []): Ending {
  return { cause, outcome: "asContainers", lasts: true, graceSeconds, graces };
}

/** The node itself ends a pod that it had admitted. */
export function isByNode({ outcome }: Ending): boolean {
  return outcome === "failed" || outcome === "cutShort";
}

/** The pod's phase depends on how its containers exit. */
export function dependsOnExits(outcome: Ending["outcome"] | undefined): boolean {
  return outcome === "asContainers" || outcome === "cutShort";
}

/**
 * An ending of an earlier run.
 * @param because why the pod is seen again
 * @param graceSeconds the pod's own; the ending's may be shorter, as of an eviction
 */
export function resumed(end: LastingEnding, because: Cause, graceSeconds: number): Ending {
  const shorter = Math.min(graceSeconds, end.graceSeconds ?? graceSeconds);
  return { ...end, cause: { ...end.cause, because }, lasts: true, graceSeconds: shorter };
}
