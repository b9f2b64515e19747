import type { Pod } from "../api/pod.ts";
import type { Recorder } from "../journal/entry.ts";
import { removeEmpty } from "../ports/files.ts";
import type { Files } from "../ports/files.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { Clock } from "../ports/clock.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { type BlockMapPorts, type BlockPlace, isMapped, mapDevice, tellMapped, unmapDevice } from "./block-map.ts";
import { type OperationObserver, pluginLabel } from "./volume-operations.ts";
import { VolumeOperationError } from "./volume-operation-error.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { PreparedVolume, ReconstructedVolume } from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

export interface LocalBlockDependencies extends BlockMapPorts {
  readonly files: Files;
  readonly volumeFiles: Pick<VolumeFiles, "kind">;
  readonly journal: Recorder;
  readonly clock: Clock;
  readonly observer?: OperationObserver;
}

const directoryName = "kubernetes.io~local-volume";

/** A local PersistentVolume with volumeMode Block: a block device of the node. */
export function localBlock(
  deps: LocalBlockDependencies,
  pod: Pod,
  { name, readOnly, persistentVolume }: VolumeSpec,
  paths: VolumePaths,
): PreparedVolume {
  const place = placeOf(paths, pod.metadata.uid, name);
  return {
    ...{ name, type: "local", hostPath: place.link, readOnly, own: false },
    isSetUp: () => isMapped(deps, place),
    async setUp() {
      try {
        const device = await deviceOf(deps, persistentVolume?.spec.local?.path ?? "");
        await mapDevice(deps, device, place);
      } catch (error) {
        throw new VolumeOperationError("MapVolume.MapBlockVolume", name, error);
      }
      tellMapped(deps.journal, pod, name, place);
    },
  };
}

/** A local block volume found in a pod's directory. */
export function foundLocalBlock(deps: LocalBlockDependencies, paths: VolumePaths, name: string): ReconstructedVolume {
  const place = placeOf(paths, uidOf(paths), name);
  return {
    async tearDown() {
      await unmapDevice(deps, place);
      await giveUp(deps, place);
      await deps.files.remove(place.link);
    },
  };
}

/** After the last pod the device is no longer the node's either. */
async function giveUp(
  { files, clock, observer }: LocalBlockDependencies,
  { globalMap }: Pick<BlockPlace, "globalMap">,
): Promise<void> {
  const sinceMs = clock.monotonic();
  if (!(await removeEmpty(files, globalMap))) return;
  const durationMs = clock.monotonic() - sinceMs;
  const operation = {
    plugin: pluginLabel(directoryName),
    name: "unmap_device",
    failed: false,
    migrated: false,
  } as const;
  observer?.storageOperation({ ...operation, durationMs });
}

function placeOf(paths: VolumePaths, uid: string, name: string): BlockPlace {
  const globalMap = `${paths.root}/plugins/${directoryName}/volumeDevices/${name}`;
  return { globalMap, uid, link: paths.device(directoryName, name) };
}

function uidOf({ pod }: VolumePaths): string {
  return pod.slice(pod.lastIndexOf("/") + 1);
}

async function deviceOf({ files, volumeFiles }: LocalBlockDependencies, path: string): Promise<string> {
  if (path.split("/").includes("..")) throw new VolumeError(`invalid path: ${path} must not contain '..'`);
  const kind = await volumeFiles.kind(path);
  if (kind === undefined) throw new VolumeError(`path ${JSON.stringify(path)} does not exist`);
  if (kind !== "blockDevice") throw new VolumeError(`path ${JSON.stringify(path)} is not a block device`);
  return await files.realPath(path);
}
