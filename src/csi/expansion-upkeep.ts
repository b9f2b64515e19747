import type { VolumeUpkeep } from "../volumes/volume-plugin.ts";
import type { ClaimedVolume } from "./expansions.ts";
import { untilDone } from "./patience.ts";
import type { CsiSource } from "./source.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** A running pod's volume that may grow. */
export interface GrowingVolume {
  readonly isPublished: () => boolean;
  readonly call: (bytes: bigint, signal: AbortSignal) => Promise<void>;
}

/** Expands a running pod's volume after its PersistentVolume has grown, with retries until it succeeds. */
export function expansionUpkeep(
  { clock, drivers, expansions }: CsiVolumeParts,
  claimed: ClaimedVolume,
  { name, driver }: CsiSource,
  { isPublished, call }: GrowingVolume,
): VolumeUpkeep {
  return {
    name: "expansion",
    isDue: () => isPublished() && drivers.has(driver) && expansions.isDue(claimed),
    run: async (signal) => {
      using _keeping = expansions.keep(claimed);
      if (!(await drivers.get(driver).supports("expand", { signal }))) return;
      await untilDone(clock, `volume ${name} to be expanded`, signal, async () => {
        const error = await expansions.look(claimed, (bytes) => call(bytes, signal), signal);
        return error && { error, until: drivers.has(driver) ? undefined : drivers.registered(driver) };
      });
    },
  };
}
