import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { AttachedVolume, VolumeUpkeep } from "../volumes/volume-plugin.ts";
import { untilDone } from "./patience.ts";
import type { CsiSource } from "./source.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** The state of a running pod's volume. */
export interface Keeping {
  /** A call of this run has confirmed that it is published. */
  readonly isConfirmed: () => boolean;
  /** Its driver requires republishing, and the interval is over. */
  readonly isDue: () => boolean;
  readonly confirm: (signal: AbortSignal, attached: AttachedVolume | undefined) => Promise<void>;
  readonly republish: (signal: AbortSignal, attached: AttachedVolume | undefined) => Promise<void>;
}

/**
 * Publishes a running pod's volume again: to confirm it after a restart, and for drivers that require republishing.
 * Retried with back-off; each failure is an Event, and does not affect pod and volume.
 */
export function csiUpkeep(
  { clock, journal, drivers }: CsiVolumeParts,
  pod: Pod,
  { name, driver, mode }: CsiSource,
  keeping: Keeping,
): VolumeUpkeep {
  const { namespace, name: podName } = pod.metadata;
  const cause: Cause = {
    code: "VolumeToBeConfirmed",
    message: `pod ${namespace}/${podName} runs with volume ${name}`,
  };
  return {
    name: "publication",
    isDue: () => !keeping.isConfirmed() || keeping.isDue(),
    run: async (signal, waitForAttachment) => {
      const attached = await waitForAttachment();
      const once = keeping.isConfirmed() ? keeping.republish : keeping.confirm;
      const action: ActionInput = {
        what: mode === "Block" ? "RemapVolume" : "RepublishVolume",
        message: `publish volume ${name} again`,
        pod: podRef(pod),
        cause,
        data: { volume: name, driver },
      };
      await untilDone(
        clock,
        `volume ${name} of pod ${namespace}/${podName} to be published again`,
        signal,
        async () => {
          try {
            await perform(journal, clock, action, () => once(signal, attached));
            return undefined;
          } catch (error) {
            signal.throwIfAborted();
            return { error, until: drivers.has(driver) ? undefined : drivers.registered(driver) };
          }
        },
      );
    },
  };
}
