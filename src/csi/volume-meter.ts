import type { NodeGetVolumeStatsResponse, VolumeUsage } from "../ports/gen/csi/v1/csi_pb.js";
import type { VolumeFigures, VolumeMeter } from "../volumes/volume-meter.ts";
import type { CsiClient } from "./csi-client.ts";
import type { CsiNames } from "./names.ts";
import type { CsiSource } from "./source.ts";

export interface CsiMeterParts {
  readonly drivers: { get(name: string): Pick<CsiClient, "supports" | "stats"> };
  readonly names: Pick<CsiNames, "toldToDrivers">;
  /** Feature gate CSIVolumeHealth. */
  readonly asksHealth: boolean;
}

/** VolumeUsage.Unit of the specification. */
const unit = { bytes: 1, inodes: 2 } as const;

export interface MeteredVolume {
  readonly source: Pick<CsiSource, "driver" | "handle" | "isMigrated">;
  /** The path that the driver measures. */
  readonly measured: string;
}

/** Measures a volume through its driver, if supported. */
export class CsiMeter implements VolumeMeter {
  readonly #parts: CsiMeterParts;
  readonly #volume: MeteredVolume;

  constructor(parts: CsiMeterParts, volume: MeteredVolume) {
    this.#parts = parts;
    this.#volume = volume;
  }

  get source(): string {
    return this.#volume.source.driver;
  }

  async read(signal: AbortSignal): Promise<VolumeFigures | undefined> {
    const { drivers, names, asksHealth } = this.#parts;
    const { source, measured } = this.#volume;
    const { driver, handle: volumeId, isMigrated: migrated } = source;
    const client = drivers.get(driver);
    if (!(await client.supports("volumeStats", { signal }))) return undefined;
    const request = { volumeId, volumePath: names.toldToDrivers(measured) };
    const answer = await client.stats(request, { signal, migrated });
    const tellsHealth = asksHealth && (await client.supports("volumeCondition", { signal }));
    return csiFigures(answer, tellsHealth);
  }
}

/**
 * A driver's statistics of a volume. Pure.
 * @throws Error if the response has none
 */
export function csiFigures(
  { usage, volumeCondition }: Pick<NodeGetVolumeStatsResponse, "usage" | "volumeCondition">,
  tellsHealth: boolean,
): VolumeFigures {
  if (usage.length === 0) throw new Error("failed to get usage from response. usage is nil");
  // As upstream: the last entry of a unit counts.
  const byUnit = new Map<number, VolumeUsage>(usage.map((each) => [each.unit, each]));
  const [bytes, inodes] = [byUnit.get(unit.bytes), byUnit.get(unit.inodes)];
  const { abnormal = false, message = "" } = volumeCondition ?? {};
  return {
    capacityBytes: Number(bytes?.total ?? 0n),
    availableBytes: Number(bytes?.available ?? 0n),
    usedBytes: Number(bytes?.used ?? 0n),
    inodes: Number(inodes?.total ?? 0n),
    inodesFree: Number(inodes?.available ?? 0n),
    inodesUsed: Number(inodes?.used ?? 0n),
    ...(tellsHealth && { condition: { abnormal, message } }),
  };
}
