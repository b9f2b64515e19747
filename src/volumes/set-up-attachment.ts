import { causeOf, errorMessage } from "../base/errors.ts";
import { AttachLimitError, type Attachments } from "./attachments.ts";
import { AwaitedError } from "./awaited-error.ts";
import { attachedVolume, attachProblem, type KeptVolume } from "./kept-attachment.ts";
import type { VolumeOperationError } from "./volume-operation-error.ts";
import type { AttachedVolume } from "./volume-plugin.ts";
import type { RemarkedPod, VolumeRemarks } from "./volume-remarks.ts";

/** Of a volume that is to be set up. */
export interface SetUpAttachment {
  /** Undefined also if it needs none. */
  readonly attached?: AttachedVolume | undefined;
  /** It is wrong. Unlike a wait for it, as in upstream, that is a failure of the set-up, of which an Event tells. */
  readonly problem?: VolumeOperationError;
}

/**
 * Waits until a volume is attached that is to be set up.
 * @param attachments undefined without a cluster: nothing is attached there
 * @throws AttachLimitError, VolumeOperationError for what is awaited, or the signal's reason
 */
export async function attachmentForSetUp(
  attachments: Attachments | undefined,
  remarks: VolumeRemarks,
  mounting: RemarkedPod,
  { spec, request }: KeptVolume,
  signal: AbortSignal,
): Promise<SetUpAttachment> {
  const { pod, progress } = mounting;
  const { podVolume } = spec;
  let told = "";
  const waiting = (why: string): void => {
    progress.unattached(podVolume);
    if (why === told) return;
    told = why;
    remarks.unattached(mounting, podVolume, why);
  };
  try {
    const attached = await attachedVolume(attachments, { pod, request, waiting }, signal);
    // Also one that need not be attached, which may not have been known before.
    progress.attached(podVolume);
    remarks.goesOn(mounting, podVolume);
    return { attached };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AttachLimitError) throw error;
    const problem = attachProblem(spec, error, attachments);
    if (causeOf(error, AwaitedError) === undefined) {
      remarks.goesOn(mounting, podVolume);
      return { problem };
    }
    remarks.unattached(mounting, podVolume, errorMessage(error));
    throw problem;
  }
}
