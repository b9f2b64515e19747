import type { RejectionReason } from "../journal/vocabulary.ts";
import type { Ending } from "./ending.ts";

/** Begins the message of a refused pod's status; its Event has the rest alone. */
export const rejected = "Pod was rejected: ";
/** Nothing of the pod runs that would need more. */
const graceSeconds = 1;

/** Why a pod may not run on this node; reason and message as upstream has them. */
export interface Rejection {
  readonly reason: RejectionReason;
  readonly message: string;
}

/** A rejection as the pod's status tells it. @param message what speaks against the pod */
export function rejection(reason: RejectionReason, message: string): Rejection {
  return { reason, message: `${rejected}${message}` };
}

/** Whether the message of a pod's status is one of a rejection: others may end pods for the same reason. */
export function tellsRejection(message: string): boolean {
  return message.startsWith(rejected);
}

/** The node does not take the pod. @param entry of the journal, that says so */
export function refused({ reason, message }: Rejection, entry: number): Ending {
  return { cause: { code: reason, message, entry }, outcome: "refused", lasts: false, graceSeconds };
}
