import type { VolumeAttachment } from "../api/volume-attachment.ts";
import { parseTime } from "../base/time.ts";

/** gRPC's RESOURCE_EXHAUSTED. */
const resourceExhausted = 8;

/** The failed attempt that a VolumeAttachment shows, comparable with another look at it; empty: none has failed. Pure. */
export function failedAttempt({ metadata, status }: VolumeAttachment): string {
  const { attachError } = status ?? {};
  if (attachError === undefined) return "";
  const { time, message, errorCode } = attachError;
  return JSON.stringify([metadata.uid, time, message, errorCode]);
}

/**
 * Why the node has no place for the pod's volume; undefined: no attempt for this pod has shown that. Pure.
 *
 * Its VolumeAttachment has the same name for each pod of the claim on this node. What failed for an earlier pod, which was
 * rejected for it, says nothing of a pod that was recreated within the same second: one after the other would be rejected.
 * @param created the pod's creationTimestamp
 * @param first the failed attempt that the first look of the pod's wait found; undefined: this is the first look
 */
export function limitProblem(
  attachment: VolumeAttachment,
  created: string | undefined,
  first: string | undefined,
): string | undefined {
  const { attachError } = attachment.status ?? {};
  if (attachError?.errorCode !== resourceExhausted) return undefined;
  if (attachment.metadata.deletionTimestamp !== undefined) return undefined;
  const isNew = first !== undefined && first !== failedAttempt(attachment);
  if (!isNew && !isLater(attachError.time, created)) return undefined;
  return attachError.message ?? "the driver's volume limit is reached";
}

/** Both are in whole seconds: within the same one, which came first is unknown. The attempt is repeated soon. */
function isLater(time: string | undefined, created: string | undefined): boolean {
  const [attemptMs, createdMs] = [time, created].map((text) => (text === undefined ? undefined : parseTime(text)));
  if (attemptMs === undefined || createdMs === undefined) return false;
  return Math.floor(attemptMs / 1000) > Math.floor(createdMs / 1000);
}
