import type { Pod } from "../api/pod.ts";
import type { Clock } from "../ports/clock.ts";
import type { Attachments } from "./attachments.ts";
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
  const checked = async (
    check: (all: Attachments, request: AttachmentRequest) => Promise<AttachedVolume>,
  ): Promise<AttachedVolume | undefined> => {
    try {
      const wanted = await request();
      return wanted && attachments && (await check(attachments, wanted));
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
    const attached = await checked((all, wanted) => all.attached(wanted, kept.pod.metadata.uid, waiting, signal));
    remarks.goesOn(kept, spec.podVolume);
    return attached;
  };
  return { wait, look: () => checked((all, wanted) => all.look(wanted, signal)) };
}

/** As upstream reports it. */
export function attachProblem(spec: Pick<VolumeSpec, "name" | "mode">, error: unknown): VolumeOperationError {
  return new VolumeOperationError(`${mountStep(spec)}.WaitForAttach`, spec.name, error);
}
