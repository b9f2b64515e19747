import type { Family } from "./family.ts";

/** Work on a volume that has not ended for long. */
export interface SilentVolume {
  readonly volume: string;
  /** A driver's name, or that of a kind of volumes. */
  readonly driver: string;
  readonly operation: string;
  readonly seconds: number;
}

/** What podwright waits for longest of each volume; a volume of several pods is shown once for each operation. Pure. */
export function silentVolumeFamily(volumes: readonly SilentVolume[]): Family {
  const longest = new Map<string, SilentVolume>();
  for (const each of volumes) {
    const key = JSON.stringify([each.driver, each.volume, each.operation]);
    if ((longest.get(key)?.seconds ?? 0) <= each.seconds) longest.set(key, each);
  }
  return {
    name: "podwright_volume_silent_seconds",
    help: "How long storage or a driver has not answered about a volume, where that is longer than 30 s",
    type: "gauge",
    stability: undefined,
    labels: ["driver", "volume", "operation"],
    samples: [...longest.values()].map(({ driver, volume, operation, seconds }) => {
      return { labels: [driver, volume, operation], value: seconds };
    }),
  };
}
