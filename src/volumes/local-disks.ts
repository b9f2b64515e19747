import { errorMessage } from "../base/errors.ts";
import type { Pod } from "../api/pod.ts";
import type { Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import { type Files, removeEmpty } from "../ports/files.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { checkDisk, type DiskPorts, fileSystemOf, formatDisk, formatOf } from "./disk-format.ts";
import { measuredOperation, type OperationObserver } from "./volume-operations.ts";
import { VolumeOperationError } from "./volume-operation-error.ts";
import { mountOptionsOf, type VolumeSpec } from "./volume-spec.ts";
import { Turns } from "../base/turns.ts";

export interface LocalDiskDependencies extends DiskPorts {
  readonly clock: Clock;
  readonly files: Pick<Files, "makeDirectory" | "remove" | "stat">;
  readonly mounts: Mounts;
  readonly journal: Recorder;
  readonly observer?: OperationObserver;
}

/** A disk, and what a pod's use of it is. */
interface DiskUse {
  readonly root: string;
  readonly name: string;
  /** The end of the paths at which pods have it. */
  readonly end: string;
}

/** Block devices of the node with file systems, each mounted once for all its pods. */
export class LocalDisks {
  readonly #deps: LocalDiskDependencies;
  /** By volume: a pod that comes does not meet one that goes. */
  readonly #turns = new Turns();

  constructor(deps: LocalDiskDependencies) {
    this.#deps = deps;
  }

  /**
   * Mounts a volume's device unless it is, and makes a file system on it when nothing is there.
   * @param use what the pod does with it, before another one may take it away
   * @throws VolumeOperationError
   */
  async mounted(pod: Pod, spec: VolumeSpec, root: string, use: (place: string) => Promise<void>): Promise<void> {
    const { name, readOnly } = spec;
    const local = spec.persistentVolume?.spec.local;
    const place = placeOf(root, name);
    using _turn = await this.#turns.take(name);
    const device = local?.path ?? "";
    const options = [...new Set([...(readOnly ? ["ro"] : []), ...mountOptionsOf(spec)])];
    try {
      const fileSystem = fileSystemOf(local?.fsType);
      const isMounted = await isMountPoint(this.#deps.mounts, place);
      if (!isMounted) await this.#mount(pod, { name, device, fileSystem, options }, place);
    } catch (error) {
      throw new VolumeOperationError("MountVolume.MountDevice", name, error);
    }
    await use(place);
  }

  /** A pod has given the volume back: after the last one it is unmounted. */
  async released({ root, name, end }: DiskUse): Promise<void> {
    const { files, mounts } = this.#deps;
    const place = placeOf(root, name);
    if ((await files.stat(place)) === undefined) return;
    using _turn = await this.#turns.take(name);
    if ((await mounts.below(`${root}/pods`)).some(({ target }) => target.endsWith(end))) return;
    await measuredOperation(this.#deps, "unmount_device", { plugin: "kubernetes.io/local-volume" }, async () => {
      await mounts.unmount(place);
      await removeEmpty(files, place);
    });
  }

  async #mount(
    pod: Pod,
    disk: {
      readonly name: string;
      readonly device: string;
      readonly fileSystem: string;
      readonly options: readonly string[];
    },
    place: string,
  ): Promise<void> {
    const { files, mounts } = this.#deps;
    const { device, fileSystem, options } = disk;
    const readOnly = options.includes("ro");
    const found = await formatOf(this.#deps, device);
    if (found !== undefined && !readOnly) await checkDisk(this.#deps, device);
    if (found === undefined && readOnly) {
      const why = "as we are manipulating it in read-only mode";
      throw new VolumeError(`cannot mount unformatted disk ${device} ${why}`);
    }
    if (found === undefined) await this.#format(pod, disk);
    await files.makeDirectory(place, 0o750);
    try {
      await mounts.mount({ source: device, target: place, fileSystem, options });
    } catch (error) {
      await removeEmpty(files, place);
      const on = found === undefined || found === fileSystem ? "" : `; on it is ${found}`;
      const what = `local: failed to mount device ${device} at ${place} (fstype: ${fileSystem})`;
      throw new VolumeError(`${what}, error ${errorMessage(error)}${on}`, { cause: error });
    }
  }

  async #format(
    pod: Pod,
    { name, device, fileSystem }: { readonly name: string; readonly device: string; readonly fileSystem: string },
  ): Promise<void> {
    const { clock, journal } = this.#deps;
    const { namespace, name: user } = pod.metadata;
    const action = {
      what: "FormatDisk",
      message: `make a file system of type ${fileSystem} on ${device}, where nothing is`,
      pod: podRef(pod),
      cause: { code: "VolumeWanted", message: `pod ${namespace}/${user} uses volume ${name}` },
      data: { volume: name, device },
    } as const;
    await perform(journal, clock, action, () => formatDisk(this.#deps, device, fileSystem));
  }
}

function placeOf(root: string, name: string): string {
  return `${root}/plugins/kubernetes.io/local-volume/mounts/${name}`;
}
