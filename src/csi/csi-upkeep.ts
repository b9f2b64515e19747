import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { Emitter } from "../base/emitter.ts";
import { causeOf } from "../base/errors.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { AttachedVolume, VolumeUpkeep } from "../volumes/volume-plugin.ts";
import { AwaitedError } from "../volumes/awaited-error.ts";
import { measuredMount, pluginLabel } from "../volumes/volume-operations.ts";
import { csiDirectoryName } from "./names.ts";
import { untilDone } from "./patience.ts";
import type { CsiSource } from "./source.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** A running pod's volume. */
export interface PublishedVolume {
  readonly pod: Pod;
  readonly source: CsiSource;
  /** A call of this run has confirmed that it is published. */
  readonly isPublished: boolean;
  /** Its driver requires republishing, and the interval is over. */
  readonly isOutdated: boolean;
  /** Confirms it. */
  setUp(signal: AbortSignal, attached: AttachedVolume | undefined): Promise<void>;
  republish(signal: AbortSignal, attached: AttachedVolume | undefined): Promise<void>;
}

/**
 * Publishes a running pod's volume again: to confirm it after a restart, and for drivers that require republishing.
 * Retried with back-off; each failure is an Event, and does not affect pod and volume.
 */
export class PublicationUpkeep implements VolumeUpkeep {
  readonly name = "publication";
  readonly #parts: CsiVolumeParts;
  readonly #volume: PublishedVolume;

  constructor(parts: CsiVolumeParts, volume: PublishedVolume) {
    this.#parts = parts;
    this.#volume = volume;
  }

  isDue(): boolean {
    return !this.#volume.isPublished || this.#volume.isOutdated;
  }

  async run(
    signal: AbortSignal,
    waitForAttachment: () => Promise<AttachedVolume | undefined>,
    retries: Emitter,
  ): Promise<void> {
    const { clock, journal } = this.#parts;
    const volume = this.#volume;
    const { namespace, name: podName } = volume.pod.metadata;
    const { name, driver } = volume.source;
    const attached = await waitForAttachment();
    const isConfirmed = volume.isPublished;
    const label = { plugin: pluginLabel(csiDirectoryName, driver), migrated: volume.source.isMigrated };
    const published = (): Promise<void> =>
      perform(journal, clock, publishedAgain(volume), async () => {
        if (isConfirmed) await volume.republish(signal, attached);
        else await volume.setUp(signal, attached);
      });
    const again = `volume ${name} of pod ${namespace}/${podName} to be published again`;
    await untilDone(clock, again, signal, async () => {
      try {
        await measuredMount(this.#parts, { ...label, mode: volume.source.mode }, published, signal);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        return { error, until: causeOf(error, AwaitedError)?.until, retries };
      }
    });
  }
}

function publishedAgain({ pod, source: { name, driver, mode } }: PublishedVolume): ActionInput {
  const { namespace, name: podName } = pod.metadata;
  const cause: Cause = {
    code: "VolumeToBeConfirmed",
    message: `pod ${namespace}/${podName} runs with volume ${name}`,
  };
  return {
    what: mode === "Block" ? "RemapVolume" : "RepublishVolume",
    message: `publish volume ${name} again`,
    pod: podRef(pod),
    cause,
    data: { volume: name, driver },
  };
}
