import { errorMessage } from "../base/errors.ts";
import type { Pod } from "../api/pod.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Files } from "../ports/files.ts";
import type { LoopDevices } from "../ports/loop-devices.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";

export interface BlockMapPorts {
  readonly files: Pick<Files, "makeDirectory" | "write" | "symlink" | "readLink" | "remove" | "stat">;
  readonly mounts: Pick<Mounts, "below" | "mount" | "unmount">;
  readonly loopDevices: LoopDevices;
}

/** The paths of a pod's block volume on the node. */
export interface BlockPlace {
  /** The directory where the volume's devices are bind-mounted, one per pod, by its UID. */
  readonly globalMap: string;
  readonly uid: string;
  /** The link in the pod's directory, which its containers get. */
  readonly link: string;
}

/** Bind-mounts the device for the pod, links it, and holds it so that its device name is not reused. Idempotent. */
export async function mapDevice(ports: BlockMapPorts, device: string, place: BlockPlace): Promise<void> {
  const { mounts, loopDevices } = ports;
  const { globalMap, uid } = place;
  const bound = boundPath(place);
  // First, so that the link leads to whatever remains after a failure.
  await linkDevice(ports, device, place);
  try {
    await ports.files.makeDirectory(globalMap, 0o750);
    if (!(await isMountPoint(mounts, bound))) {
      // A reboot leaves an empty file.
      if ((await ports.files.stat(bound)) === undefined) await ports.files.write(bound, "", 0o640);
      await mounts.mount({ source: device, target: bound, fileSystem: "", options: ["bind"] });
    }
  } catch (error) {
    const of = `devicePath: ${device}, globalMapPath:${globalMap}, podUID: ${uid}, bindMount: true`;
    throw new VolumeError(`blkUtil.MapDevice failed. ${of}: ${errorMessage(error)}`, { cause: error });
  }
  try {
    await loopDevices.hold(bound);
  } catch (error) {
    const of = `globalMapPath:${globalMap}, podUID: ${uid}`;
    throw new VolumeError(`blkUtil.AttachFileDevice failed. ${of}: ${errorMessage(error)}`, { cause: error });
  }
}

/** The link identifies the volume in the pod's directory for its teardown. */
export async function linkDevice(
  { files }: Pick<BlockMapPorts, "files">,
  device: string,
  { link }: Pick<BlockPlace, "link">,
): Promise<void> {
  const found = await files.stat(link);
  if (found?.type === "symlink" && (await files.readLink(link)) === device) return;
  await files.makeDirectory(parentOf(link), 0o750);
  if (found !== undefined) await files.remove(link);
  await files.symlink(device, link);
}

/** Whether everything that {@link mapDevice} creates exists. */
export async function isMapped({ files, mounts, loopDevices }: BlockMapPorts, place: BlockPlace): Promise<boolean> {
  const bound = boundPath(place);
  if ((await files.stat(place.link))?.type !== "symlink") return false;
  return (await isMountPoint(mounts, bound)) && (await loopDevices.isHeld(bound));
}

/** Releases and unmounts the device. The link stays, so that an incomplete unmap is found. */
export async function unmapDevice(ports: BlockMapPorts, place: BlockPlace): Promise<void> {
  const bound = boundPath(place);
  await ports.loopDevices.release(bound);
  await ports.mounts.unmount(bound);
  await ports.files.remove(bound);
}

/** Upstream's two Events for a block volume that is ready for its pod. */
export function tellMapped(
  journal: Recorder,
  pod: Pod,
  volume: string,
  { globalMap, link }: Pick<BlockPlace, "globalMap" | "link">,
): void {
  const paths = [`globalMapPath ${JSON.stringify(globalMap)}`, `volumeMapPath ${JSON.stringify(parentOf(link))}`];
  for (const path of paths) {
    const message = `MapVolume.MapPodDevice succeeded for volume ${JSON.stringify(volume)} ${path}`;
    journal.record({ kind: "note", what: "SuccessfulMountVolume", message, pod: podRef(pod) });
  }
}

function boundPath({ globalMap, uid }: BlockPlace): string {
  return `${globalMap}/${uid}`;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
