import type { Emitter } from "../base/emitter.ts";
import type { VolumeUpkeep } from "../volumes/volume-plugin.ts";
import { measuredOperation, pluginLabel } from "../volumes/volume-operations.ts";
import type { ClaimedVolume } from "./expansions.ts";
import { csiDirectoryName } from "./names.ts";
import { untilDone } from "./patience.ts";
import type { CsiSource } from "./source.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** A running pod's volume that may grow. */
export interface GrowingVolume {
  readonly source: CsiSource;
  readonly isPublished: boolean;
  /** Calls the driver. */
  growTo(bytes: bigint, signal: AbortSignal): Promise<void>;
}

/** Expands a running pod's volume after its PersistentVolume has grown, with retries until it succeeds. */
export class ExpansionUpkeep implements VolumeUpkeep {
  readonly name = "expansion";
  readonly #parts: CsiVolumeParts;
  readonly #claimed: ClaimedVolume;
  readonly #volume: GrowingVolume;

  constructor(parts: CsiVolumeParts, claimed: ClaimedVolume, volume: GrowingVolume) {
    this.#parts = parts;
    this.#claimed = claimed;
    this.#volume = volume;
  }

  isDue(): boolean {
    const { drivers, expansions } = this.#parts;
    const { isPublished, source } = this.#volume;
    return isPublished && drivers.has(source.driver) && expansions.isDue(this.#claimed);
  }

  async run(signal: AbortSignal, _attachment: unknown, retries: Emitter): Promise<void> {
    const { clock, drivers, expansions } = this.#parts;
    const { name, driver, isMigrated } = this.#volume.source;
    using _keeping = expansions.keep(this.#claimed);
    if (!(await drivers.get(driver).supports("expand", { signal }))) return;
    const label = { plugin: pluginLabel(csiDirectoryName, driver), migrated: isMigrated };
    const grow = (bytes: bigint): Promise<void> =>
      measuredOperation(this.#parts, "volume_fs_resize", label, () => this.#volume.growTo(bytes, signal), signal);
    await untilDone(clock, `volume ${name} to be expanded`, signal, async () => {
      const error = await expansions.look(this.#claimed, grow, signal);
      return error && { error, until: drivers.has(driver) ? undefined : drivers.registered(driver), retries };
    });
  }
}
