import type { Pod } from "../api/pod.ts";
import type { Clock } from "../ports/clock.ts";
import type { Attachments, WantedAttachment } from "./attachments.ts";
import { namedAfterMs } from "./storage-waits.ts";
import { mountStep, VolumeOperationError } from "./volume-operation-error.ts";
import type { AttachedVolume, AttachmentRequest, KeptAttachment } from "./volume-plugin.ts";
import type { VolumeRemarks } from "./volume-remarks.ts";
import type { VolumeSpec } from "./volume-spec.ts";

export interface KeptAttachmentParts {
  readonly clock: Clock;
  /** Undefined without a cluster: nothing is attached there. */
  readonly attachments: Attachments | undefined;
  readonly remarks: VolumeRemarks;
}

export interface KeptVolume {
  readonly spec: VolumeSpec;
  /** What its plugin wants attached. */
  readonly request: () => Promise<AttachmentRequest | undefined>;
}

/** The attachment of a running pod's volume. Its errors are VolumeOperationErrors, or the signal's reason. */
export function keptAttachment(
  { clock, attachments, remarks }: KeptAttachmentParts,
  kept: { readonly pod: Pod; readonly memory: { readonly remarks: Map<string, string> } },
  { spec, request }: KeptVolume,
  signal: AbortSignal,
): KeptAttachment {
  const checked = async (check: () => Promise<AttachedVolume | undefined>): Promise<AttachedVolume | undefined> => {
    try {
      return await check();
    } catch (error) {
      signal.throwIfAborted();
      throw attachProblem(spec, error);
    }
  };
  const wait = async (): Promise<AttachedVolume | undefined> => {
    const sinceMs = clock.monotonic();
    let told = "";
    const waiting = (why: string): void => {
      // After a restart it lasts until the Node is known.
      if (why === told || clock.monotonic() - sinceMs < namedAfterMs) return;
      told = why;
      remarks.unattached(kept, spec.podVolume, why);
    };
    const attached = await checked(() => attachedVolume(attachments, { pod: kept.pod, request, waiting }, signal));
    remarks.goesOn(kept, spec.podVolume);
    return attached;
  };
  const look = async (): Promise<AttachedVolume | undefined> => {
    const wanted = await request();
    return wanted && (await attachments?.look(wanted, signal));
  };
  return { wait, look: () => checked(look) };
}

/** Waits for it. @param attachments undefined: nothing is attached, but a driver may still be unknown */
export async function attachedVolume(
  attachments: Attachments | undefined,
  wanted: WantedAttachment,
  signal: AbortSignal,
): Promise<AttachedVolume | undefined> {
  if (attachments !== undefined) return await attachments.attached(wanted, signal);
  await wanted.request();
  return undefined;
}

/** As upstream reports it: a kubelet that has to attach its volumes itself fails in a step of its own. */
export function attachProblem(
  spec: Pick<VolumeSpec, "name" | "mode">,
  error: unknown,
  attachments?: Pick<Attachments, "byController">,
): VolumeOperationError {
  const step = attachments?.byController === false ? "AttachVolume.Attach" : `${mountStep(spec)}.WaitForAttach`;
  return new VolumeOperationError(step, spec.name, error);
}
