import { FileError } from "../../ports/files.ts";
import type { OpenedVolumePath, VolumeFiles } from "../../ports/volume-files.ts";
import { onPath } from "../file-error.ts";
import { type FarStorage, type FarStorageFinder, OwnDisks } from "./far-storage.ts";
import { systemFiles } from "./files.ts";
import { giveToGroup } from "./group-gift.ts";
import { usageOf } from "./remote-storage.ts";
import { inStorage, openInStorage } from "./storage-helpers.ts";
import { StorageWork } from "./storage-work.ts";
import { type FileIdentity, volumeCalls } from "./volume-calls.ts";

/** For programs without a node. */
export const systemVolumeFiles: VolumeFiles = volumeFiles(new OwnDisks());

/** Work on the node's own disks is done by this process, and by others elsewhere. */
export function volumeFiles(disks: FarStorageFinder): VolumeFiles {
  const farOf = (path: string): FarStorage | undefined => usable(disks.farStorageOf(path));
  const farFor = (root: string, relativePath: string): FarStorage | undefined => {
    return usable(disks.farStorageIn(root, relativePath));
  };
  return {
    kind: (path, { onlyOnOwnDisks = false } = {}) =>
      onPath(path, async () => {
        const storage = farOf(path);
        if (storage === undefined) return await volumeCalls.kind(path);
        if (onlyOnOwnDisks) throw new FileError("EREMOTE", path, `EREMOTE: '${path}' is not on the node's own disks`);
        return await inStorage(storage, "kind", path);
      }),
    create: (path, kind) =>
      onPath(path, async () => {
        const storage = farOf(path);
        if (storage !== undefined) await inStorage(storage, "create", path, kind);
        else if (kind === "directory") await systemFiles.makeDirectory(path, 0o755);
        else await systemFiles.append(path, "", 0o644);
      }),
    groupOf: (path) =>
      onPath(path, async () => {
        const storage = farOf(path);
        return await (storage === undefined ? volumeCalls.groupOf(path) : inStorage(storage, "groupOf", path));
      }),
    openBeneath: (root, relativePath) =>
      onPath(`${root}/${relativePath}`, async () => {
        const storage = farFor(root, relativePath);
        return await (storage === undefined ? openHere : openThere(storage))(disks, root, relativePath);
      }),
    readBeneath: (root, relativePath, maxBytes) =>
      onPath(`${root}/${relativePath}`, async () => {
        const storage = farFor(root, relativePath);
        return await (storage === undefined
          ? volumeCalls.readBeneath(root, relativePath, maxBytes)
          : inStorage(storage, "readBeneath", root, relativePath, maxBytes));
      }),
    giveToGroup: (root, access, signal) => onPath(root, () => giveToGroup(root, access, disks, signal)),
    usage: (path, signal) => onPath(path, () => usageOf(path, signal)),
  };
}

function usable(storage: FarStorage | undefined): FarStorage | undefined {
  if (storage !== undefined) StorageWork.throwIfHanging(storage);
  return storage;
}

async function openHere(disks: FarStorageFinder, root: string, relativePath: string): Promise<OpenedVolumePath> {
  const opened = await volumeCalls.openBeneath(root, relativePath);
  const isShownAt = async (path: string): Promise<boolean> => {
    // Far storage would not be what was opened here.
    return disks.farStorageOf(path) === undefined && isSame(opened, await volumeCalls.identityOf(path));
  };
  return { ...opened, isShownAt };
}

function openThere(storage: FarStorage): typeof openHere {
  return async (_disks, root, relativePath) => {
    const { identityOf, ...opened } = await openInStorage(storage, root, relativePath);
    return { ...opened, isShownAt: async (path) => isSame(opened, await identityOf(path)) };
  };
}

function isSame(opened: FileIdentity, other: FileIdentity | undefined): boolean {
  return opened.device === other?.device && opened.inode === other.inode;
}
