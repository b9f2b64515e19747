import type { RejectionReason } from "../journal/vocabulary.ts";

/** Begins the message of a refused pod's status; its Event has the rest alone. */
export const rejected = "Pod was rejected: ";

/** Why a pod may not run on this node; reason and message as upstream has them. */
export interface Rejection {
  readonly reason: RejectionReason;
  readonly message: string;
}
