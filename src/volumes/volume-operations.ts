import type { VolumeMode } from "../api/persistent-volume.ts";
import type { Observer, StorageOperationName } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { VolumePlugin } from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

/** Receives operations on volumes, for metrics; undefined: nobody does. */
export type OperationObserver = Pick<Observer, "storageOperation" | "volumeMounted" | "seLinuxVolume"> | undefined;

/** What an operation is on, as metrics label it. */
export interface OperationLabel {
  readonly plugin: string;
  /** Its source was translated from a removed in-tree plugin. */
  readonly migrated?: boolean | undefined;
}

/** Upstream's full name of a volume's plugin: with the CSI driver's, if it has one. Pure. */
export function pluginLabel(directoryName: string, driver?: string): string {
  const plugin = directoryName.replace("~", "/");
  return driver === undefined ? plugin : `${plugin}:${driver}`;
}

/** The label of a volume's operations. Pure. */
export function labelOf({ name }: Pick<VolumePlugin, "name">, spec: VolumeSpec): OperationLabel {
  const { driver } = spec.persistentVolume?.spec.csi ?? spec.volume.csi ?? {};
  return { plugin: pluginLabel(name, driver), migrated: spec.isMigrated };
}

export interface OperationDependencies {
  readonly clock: Pick<Clock, "monotonic">;
  readonly observer?: OperationObserver;
}

/**
 * Measures a mount or map of a volume for its pod, unless it was canceled.
 * @param wantedMs since when the volume is wanted, monotonic ms; undefined: only now
 */
export async function measuredMount(
  deps: OperationDependencies,
  { plugin, migrated, mode, wantedMs = deps.clock.monotonic() }: OperationLabel & MountFacts,
  work: () => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const operation = mode === "Block" ? "map_volume" : "volume_mount";
  await measuredOperation(deps, operation, { plugin, migrated }, work, signal);
  if (mode === "Filesystem") deps.observer?.volumeMounted(plugin, deps.clock.monotonic() - wantedMs);
}

interface MountFacts {
  readonly mode: VolumeMode;
  readonly wantedMs?: number;
}

/** Measures work on a volume, unless it was canceled. */
export async function measuredOperation<T>(
  { clock, observer }: OperationDependencies,
  name: StorageOperationName,
  { plugin, migrated = false }: OperationLabel,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const sinceMs = clock.monotonic();
  const tell = (failed: boolean): void => {
    observer?.storageOperation({ plugin, name, failed, migrated, durationMs: clock.monotonic() - sinceMs });
  };
  try {
    const value = await work();
    tell(false);
    return value;
  } catch (error) {
    if (signal?.aborted !== true) tell(true);
    throw error;
  }
}
