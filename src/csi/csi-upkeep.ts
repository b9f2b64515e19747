import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { Emitter } from "../base/emitter.ts";
import { causeOf } from "../base/errors.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import { StorageLookupError } from "../objects/storage-lookup.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { AttachedVolume, KeptAttachment, VolumeUpkeep } from "../volumes/volume-plugin.ts";
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

  async run(signal: AbortSignal, attachment: KeptAttachment, retries: Emitter): Promise<void> {
    const { clock } = this.#parts;
    const volume = this.#volume;
    const { namespace, name: podName } = volume.pod.metadata;
    const { name, driver, mode, isMigrated: migrated } = volume.source;
    const label = { plugin: pluginLabel(csiDirectoryName, driver), migrated, mode };
    const again = `volume ${name} of pod ${namespace}/${podName} to be published again`;
    await untilDone(clock, again, signal, async () => {
      const isConfirmed = volume.isPublished;
      // A wait is no attempt yet; what it ends with is.
      const waited = isConfirmed ? undefined : attachment.wait();
      await waited?.catch(() => {});
      signal.throwIfAborted();
      // Read for each attempt: the volume may have been attached anew.
      const attached = (): Promise<AttachedVolume | undefined> => waited ?? attachment.look();
      try {
        await measuredMount(this.#parts, label, () => this.#publish(isConfirmed, attached, signal), signal);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        const leastMs = causeOf(error, StorageLookupError)?.pauseMs;
        return { error, leastMs, until: causeOf(error, AwaitedError)?.until, retries };
      }
    });
  }

  async #publish(
    isConfirmed: boolean,
    attached: () => Promise<AttachedVolume | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, journal } = this.#parts;
    const volume = this.#volume;
    await perform(journal, clock, publishedAgain(volume), async () => {
      if (isConfirmed) await volume.republish(signal, await attached());
      else await volume.setUp(signal, await attached());
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
