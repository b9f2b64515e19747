import type { SilentVolume } from "../metrics/storage-metrics.ts";
import { apiTime } from "../stats/summary.ts";
import type { VolumeStats } from "../stats/summary-types.ts";
import type { StorageWait } from "../volumes/storage-waits.ts";
import type { MeasuredVolume } from "../volumes/volume-stats.ts";

/** A measured volume in the format of `/stats/summary`. Pure. */
export function summaryVolume({ podVolume, claim, timeMs, figures }: MeasuredVolume): VolumeStats {
  const { availableBytes, capacityBytes, usedBytes, inodes, inodesFree, inodesUsed, condition } = figures;
  return {
    time: apiTime(timeMs),
    availableBytes,
    capacityBytes,
    usedBytes,
    inodesFree,
    inodes,
    inodesUsed,
    name: podVolume,
    ...(claim && { pvcRef: { name: claim.name, namespace: claim.namespace } }),
    ...(condition && { volumeHealthStats: { abnormal: condition.abnormal } }),
  };
}

/** As metrics show it. Pure. @param nowMs monotonic */
export function silentVolume(
  { volume, driver, operation, sinceMonotonicMs }: StorageWait,
  nowMs: number,
): SilentVolume {
  const seconds = (nowMs - sinceMonotonicMs) / 1000;
  return { volume, driver, operation: operation.replaceAll(" ", "_"), seconds };
}
