import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { LoopDevices } from "../ports/loop-devices.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Processes } from "../ports/processes.ts";
import type { Random } from "../ports/random.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { EmptyDirectories } from "./empty-dir.ts";
import { EmptyDirPlugin } from "./empty-dir-plugin.ts";
import { HostPathPlugin } from "./host-path-plugin.ts";
import { ImagePlugin } from "./image-plugin.ts";
import { LocalVolumePlugin } from "./local-volume-plugin.ts";
import { MemoryVolumes } from "./memory-volumes.ts";
import { NfsPlugin } from "./nfs-plugin.ts";
import { type ProjectedType, ProjectingPlugin } from "./projecting-plugin.ts";
import type { OperationObserver } from "./volume-operations.ts";
import type { VolumePlugin } from "./volume-plugin.ts";
import type { VolumeQuotas } from "./volume-quotas.ts";

export interface LocalPluginDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly files: Files;
  /** Those of memory volumes. */
  readonly memoryFiles: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
  readonly loopDevices: LoopDevices;
  readonly processes: Pick<Processes, "run">;
  readonly journal: Recorder;
  readonly objects: ObjectLookup;
  readonly node: Pick<NodeContext, "hostIPs" | "resources">;
  /** Undefined: volumes have no quotas. */
  readonly quotas?: Pick<VolumeQuotas, "assign" | "clear"> | undefined;
  readonly observer?: OperationObserver;
}

const projectedTypes: readonly ProjectedType[] = [
  { type: "configMap", name: "kubernetes.io~configmap", inMemory: false },
  { type: "secret", name: "kubernetes.io~secret", inMemory: true },
  { type: "downwardAPI", name: "kubernetes.io~downward-api", inMemory: true },
  { type: "projected", name: "kubernetes.io~projected", inMemory: true },
];

/** The plugins of volumes without a CSI driver. */
export function localPlugins(deps: LocalPluginDependencies): readonly VolumePlugin[] {
  const {
    clock,
    random,
    files,
    memoryFiles,
    volumeFiles,
    mounts,
    loopDevices,
    processes,
    journal,
    objects,
    node,
    quotas,
    observer,
  } = deps;
  const directories = new EmptyDirectories({
    files,
    volumeFiles,
    mounts,
    memory: new MemoryVolumes(mounts),
    resources: node.resources,
    quotas,
    clock,
    observer,
    mayBeSwapped: (pod, volume) => {
      const message = `volume ${volume} may be swapped to disk: the kernel does not support noswap on tmpfs`;
      journal.record({ kind: "note", what: "PossibleMemoryBackedVolumesOnDisk", message, pod: podRef(pod) });
    },
  });
  const payload = { objects, downward: { ...node, podIPs: [] } };
  const projecting = { clock, random, directories, payload };
  return [
    new EmptyDirPlugin(directories),
    new HostPathPlugin({ volumeFiles, journal }),
    new NfsPlugin({ files, volumeFiles, mounts }),
    new ImagePlugin(),
    new LocalVolumePlugin({ clock, files, volumeFiles, mounts, loopDevices, processes, journal, observer }),
    ...projectedTypes.map((type) => {
      return new ProjectingPlugin({ ...projecting, files: type.inMemory ? memoryFiles : files }, type);
    }),
  ];
}
