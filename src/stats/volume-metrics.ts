import type { Family } from "../metrics/family.ts";
import type { VolumeStats } from "./summary-types.ts";

const help = {
  kubelet_volume_stats_available_bytes: "Number of available bytes in the volume",
  kubelet_volume_stats_capacity_bytes: "Capacity in bytes of the volume",
  kubelet_volume_stats_health_status_abnormal:
    "Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy",
  kubelet_volume_stats_inodes: "Maximum number of inodes in the volume",
  kubelet_volume_stats_inodes_free: "Number of free inodes in the volume",
  kubelet_volume_stats_inodes_used: "Number of used inodes in the volume",
  kubelet_volume_stats_used_bytes: "Number of used bytes in the volume",
} as const;

const figures: Readonly<Record<keyof typeof help, (volume: VolumeStats) => number | undefined>> = {
  kubelet_volume_stats_available_bytes: ({ availableBytes }) => availableBytes,
  kubelet_volume_stats_capacity_bytes: ({ capacityBytes }) => capacityBytes,
  kubelet_volume_stats_health_status_abnormal: ({ volumeHealthStats }) =>
    volumeHealthStats && (volumeHealthStats.abnormal ? 1 : 0),
  kubelet_volume_stats_inodes: ({ inodes }) => inodes,
  kubelet_volume_stats_inodes_free: ({ inodesFree }) => inodesFree,
  kubelet_volume_stats_inodes_used: ({ inodesUsed }) => inodesUsed,
  kubelet_volume_stats_used_bytes: ({ usedBytes }) => usedBytes,
};

/** Of volumes of claims; a claim that several pods use is shown once. Pure. */
export function volumeFamilies(volumes: readonly VolumeStats[]): Family[] {
  const claims = new Map<string, VolumeStats>();
  for (const volume of volumes) {
    const { pvcRef } = volume;
    if (pvcRef === undefined) continue;
    const key = `${pvcRef.namespace}/${pvcRef.name}`;
    if (!claims.has(key)) claims.set(key, volume);
  }
  return (Object.keys(help) as (keyof typeof help)[]).map((name) => ({
    name,
    help: help[name],
    type: "gauge",
    stability: "ALPHA",
    labels: ["namespace", "persistentvolumeclaim"],
    samples: [...claims.values()].flatMap((volume) => {
      const value = figures[name](volume);
      const { namespace = "", name: claim = "" } = volume.pvcRef ?? {};
      return value === undefined ? [] : [{ labels: [namespace, claim], value }];
    }),
  }));
}
