import type { Cause } from "../journal/entry.ts";
import type { ContainerGrace } from "../runtime/actions/pod-actions.ts";

/**
 * How a pod stops for good: all that its worker, its checkpoint and its status have to know of that. Who ends pods makes
 * its own, one constructor a kind; what happens with them is decided by these fields alone.
 */
export interface Ending {
  /** Code and message are the status' reason and message where the node fails the pod. */
  readonly cause: Cause;
  /**
   * What the pod's status says. failed: phase Failed with the ending's reason, beside how each container ended. refused: the
   * same, and nothing of containers, since the node never gave the pod anything. asContainers: what the containers say.
   */
  readonly outcome: "failed" | "refused" | "asContainers";
  /** The pod stays ended in later lives of podwright, even where a source still wants it. */
  readonly lasts: boolean;
  readonly graceSeconds: number;
  /** Of containers with a grace of their own. */
  readonly graces?: readonly ContainerGrace[];
  /** Message of condition DisruptionTarget; undefined: the pod does not go for the sake of others. */
  readonly disruption?: string | undefined;
}

/** An ending that a later life of podwright takes over. */
export type LastingEnding = Pick<Ending, "cause" | "outcome" | "disruption">;

/** Nobody wants the pod any more, the API server deletes it, or it was over before: nothing is said of it but what its containers say. */
export function unwanted(cause: Cause, graceSeconds: number): Ending {
  return { cause, outcome: "asContainers", lasts: false, graceSeconds };
}

/**
 * The pod's containers have come to their end. It lasts: a later life could read that from the runtime, but by then it may
 * take what was removed for something that never ran.
 */
export function completed(cause: Cause, graceSeconds: number, graces: readonly ContainerGrace[] = []): Ending {
  return { cause, outcome: "asContainers", lasts: true, graceSeconds, graces };
}

/** What an earlier life ended. @param because why it is looked at again */
export function resumed({ cause, outcome, disruption }: LastingEnding, because: Cause, graceSeconds: number): Ending {
  return { cause: { ...cause, because }, outcome, disruption, lasts: true, graceSeconds };
}
