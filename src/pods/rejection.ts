import type { RejectionReason } from "../journal/vocabulary.ts";
import type { Ending } from "./ending.ts";

/** Prefix of the message in a rejected pod's status; its Event omits it. */
export const rejected = "Pod was rejected: ";
/** A rejected pod has no running container that would need more. */
const graceSeconds = 1;

/** Why a pod is rejected; upstream's reason and message. */
export interface Rejection {
  readonly reason: RejectionReason;
  readonly message: string;
}

/** A rejection for the pod's status. @param message the objection */
export function rejection(reason: RejectionReason, message: string): Rejection {
  return { reason, message: `${rejected}${message}` };
}

/** Whether a status message is a rejection's: pods may be ended for the same reason otherwise. */
export function tellsRejection(message: string): boolean {
  return message.startsWith(rejected);
}

/** The node rejects the pod. @param entry the journal entry of the rejection */
export function refused({ reason, message }: Rejection, entry: number): Ending {
  return { cause: { code: reason, message, entry }, outcome: "refused", lasts: false, graceSeconds };
}
