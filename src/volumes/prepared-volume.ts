import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { Files } from "../ports/files.ts";
import type { Clock } from "../ports/clock.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Random } from "../ports/random.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { ResourceSettings } from "../resources/container-resources.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import { AtomicWriter, type Payload } from "./atomic-writer.ts";
import { type EmptyDirectory, isEmptyDirReady, memoryVolumeBytes, setUpEmptyDir } from "./empty-dir.ts";
import { hostPathFits, setUpHostPath } from "./host-path.ts";
import type { MemoryVolumes } from "./memory-volumes.ts";
import { nestedMountPoints } from "./nested-mount-points.ts";
import { type PayloadInputs, payloadInputs, volumePayload } from "./payload.ts";
import { NotNowError, VolumeError } from "../runtime/volume-error.ts";
import type { VolumePaths, VolumePlugin } from "./volume-paths.ts";

/** One volume of one pod: where it is, and how it comes to be there. */
export interface PreparedVolume {
  readonly name: string;
  /** What kind it is, in the spec's word. */
  readonly type: string;
  /** Where it is on the node. */
  readonly hostPath: string;
  /** Containers may only read it, whatever their mounts say. */
  readonly readOnly: boolean;
  /** Whether nothing is to be done. False also when that can't be said, as an object is missing. */
  isSetUp(): Promise<boolean>;
  /** Brings it about from whatever is there. */
  setUp(signal: AbortSignal): Promise<void>;
  /** For those whose content comes from objects. */
  readonly content?: VolumeContent;
}

export interface VolumeContent {
  /** What it is made of, by identity (see payloadInputs). */
  inputs(): readonly unknown[];
  /** Whether the volume was set up before, whatever its content is. */
  isThere(): Promise<boolean>;
  /** Whether the volume was set up before and its content is not the one that its objects have by now. */
  isOutdated(): Promise<boolean>;
  update(): Promise<void>;
}

/** What the content of a volume is made of now; undefined: it has none, or that is not known yet. */
export function knownInputs({ content }: PreparedVolume): readonly unknown[] | undefined {
  try {
    return content?.inputs();
  } catch (error) {
    if (error instanceof NotKnownYetError) return undefined;
    throw error;
  }
}

export interface VolumeSettings {
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
  readonly memory: MemoryVolumes;
  readonly clock: Clock;
  readonly random: Random;
  readonly payload: PayloadInputs;
  readonly resources: Pick<ResourceSettings, "allocatable">;
  readonly mayBeSwapped: (pod: Pod, volume: string) => void;
}

/** @throws VolumeError for volumes that need a driver: sources of pods refuse those before */
export function prepareVolume(settings: VolumeSettings, pod: Pod, volume: Volume, paths: VolumePaths): PreparedVolume {
  const { name, hostPath, emptyDir } = volume;
  if (hostPath !== undefined) return hostPathVolume(settings, name, hostPath.path, hostPath.type ?? "");
  if (emptyDir !== undefined) return emptyDirVolume(settings, pod, name, emptyDir, paths);
  for (const [type, plugin, inMemory] of projecting) {
    if (volume[type] !== undefined) return projectingVolume(settings, pod, volume, { type, plugin, inMemory }, paths);
  }
  const type = Object.keys(volume).find((key) => key !== "name") ?? "";
  throw new VolumeError(`volumes of type ${type} are not supported`);
}

/** Volumes whose content comes from objects, where they are, and whether they may not touch the disk. */
const projecting = [
  ["configMap", "configmap", false],
  ["secret", "secret", true],
  ["downwardAPI", "downward-api", true],
  ["projected", "projected", true],
] as const satisfies readonly (readonly [keyof Volume, VolumePlugin, boolean])[];

function hostPathVolume(settings: VolumeSettings, name: string, path: string, type: string): PreparedVolume {
  return {
    name,
    type: "hostPath",
    hostPath: path,
    readOnly: false,
    isSetUp: () => hostPathFits(settings.volumeFiles, path, type),
    setUp: () => setUpHostPath(settings, path, type),
  };
}

function emptyDirVolume(
  settings: VolumeSettings,
  pod: Pod,
  name: string,
  { medium = "", sizeLimit }: NonNullable<Volume["emptyDir"]>,
  paths: VolumePaths,
): PreparedVolume {
  if (medium !== "" && medium !== "Memory") throw new VolumeError(`emptyDir medium ${medium} is not supported`);
  const empty: EmptyDirectory = {
    directory: paths.volume("empty-dir", name),
    readyDirectory: paths.readyDirectory("empty-dir", name),
    tmpfsBytes: medium === "Memory" ? memoryVolumeBytes(pod, sizeLimit, settings.resources.allocatable) : undefined,
  };
  const deps = { ...settings, mayBeSwapped: () => settings.mayBeSwapped(pod, name) };
  return {
    name,
    type: "emptyDir",
    hostPath: empty.directory,
    readOnly: false,
    isSetUp: () => isEmptyDirReady(deps, empty),
    setUp: (signal) =>
      setUpEmptyDir(deps, empty, () => giveToGroup(settings, pod, empty.directory, { readOnly: false, signal })),
  };
}

interface Projecting {
  readonly type: string;
  readonly plugin: VolumePlugin;
  readonly inMemory: boolean;
}

function projectingVolume(
  settings: VolumeSettings,
  pod: Pod,
  volume: Volume,
  { type, plugin, inMemory }: Projecting,
  paths: VolumePaths,
): PreparedVolume {
  const { name } = volume;
  const directory = paths.volume(plugin, name);
  const empty: EmptyDirectory = {
    directory,
    readyDirectory: paths.readyDirectory(plugin, name),
    tmpfsBytes: inMemory ? memoryVolumeBytes(pod, undefined, settings.resources.allocatable) : undefined,
  };
  const deps = { ...settings, mayBeSwapped: () => settings.mayBeSwapped(pod, name) };
  const writer = new AtomicWriter(settings, directory);
  const payload = (): Payload => volumePayload(volume, pod, settings.payload) ?? new Map();
  const write = async (files: Payload, signal?: AbortSignal): Promise<void> =>
    writer.write(files, () => giveToGroup(settings, pod, directory, { readOnly: true, signal }));
  return {
    name,
    type,
    hostPath: directory,
    readOnly: true,
    async isSetUp() {
      if (!(await isEmptyDirReady(deps, empty))) return false;
      let files: Payload;
      try {
        files = payload();
      } catch (error) {
        // After a start without an API server the files of an earlier life are what there is.
        return (error instanceof NotKnownYetError || error instanceof NotNowError) && (await writer.hasContent());
      }
      return await writer.isCurrent(files);
    },
    async setUp(signal) {
      // First: a missing object leaves nothing behind.
      const files = payload();
      await setUpEmptyDir(deps, empty, async () => {
        for (const path of nestedMountPoints(pod, name)) {
          await settings.files.makeDirectory(`${directory}/${path}`, 0o755);
        }
      });
      if (!(await writer.isCurrent(files))) await write(files, signal);
    },
    content: {
      inputs: () => payloadInputs(volume, pod, settings.payload),
      isThere: async () => (await isEmptyDirReady(deps, empty)) && (await writer.hasContent()),
      async isOutdated() {
        if (!(await isEmptyDirReady(deps, empty))) return false;
        const files = attempt(payload);
        return files === undefined || !(await writer.isCurrent(files));
      },
      update: async () => write(payload()),
    },
  };
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

async function giveToGroup(
  { volumeFiles }: VolumeSettings,
  pod: Pod,
  directory: string,
  { readOnly, signal }: { readonly readOnly: boolean; readonly signal: AbortSignal | undefined },
): Promise<void> {
  const gid = pod.spec.securityContext?.fsGroup;
  if (gid === undefined) return;
  // fsGroupChangePolicy is for volumes that outlive pods: these here are new.
  await volumeFiles.giveToGroup(directory, { gid, readOnly, onlyOnRootMismatch: false }, signal);
}
