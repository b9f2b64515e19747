import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { FileError } from "../../ports/files.ts";
import type { OpenedPath, PathKind, VolumeFiles } from "../../ports/volume-files.ts";
import { errnoOf, onPath } from "../file-error.ts";
import { giveToGroup } from "./group-gift.ts";
import { inStorage, usageOf } from "./remote-storage.ts";
import { Walk } from "./walk.ts";

export const systemVolumeFiles: VolumeFiles = {
  kind: (path) => onPath(path, () => inStorage(path, () => kind(path))),
  groupOf: (path) => onPath(path, () => inStorage(path, async () => (await stat(path)).gid)),
  openBeneath: (root, relativePath) =>
    onPath(`${root}/${relativePath}`, () => inStorage(root, () => openBeneath(root, relativePath))),
  readBeneath: (root, relativePath, maxBytes) =>
    onPath(`${root}/${relativePath}`, () => inStorage(root, () => readBeneath(root, relativePath, maxBytes))),
  giveToGroup: (root, access, signal) => onPath(root, () => giveToGroup(root, access, signal)),
  usage: (path, signal) => onPath(path, () => usageOf(path, signal)),
};

async function kind(path: string): Promise<PathKind | undefined> {
  try {
    const info = await stat(path);
    if (info.isDirectory()) return "directory";
    if (info.isFile()) return "file";
    if (info.isSocket()) return "socket";
    if (info.isCharacterDevice()) return "characterDevice";
    return info.isBlockDevice() ? "blockDevice" : "other";
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

async function openBeneath(root: string, relativePath: string): Promise<OpenedPath> {
  const walk = await Walk.from(root, { makes: true });
  try {
    await walk.follow(relativePath.split("/"));
    return await walk.result();
  } catch (error) {
    await walk.close();
    throw error;
  }
}

async function readBeneath(root: string, relativePath: string, maxBytes: number): Promise<Uint8Array | undefined> {
  const walk = await Walk.from(root, { makes: false });
  try {
    await walk.follow(relativePath.split("/"));
    await using opened = await walk.result();
    if (!opened.isFile) throw new FileError("EINVAL", relativePath, "EINVAL: not a regular file");
    await using file = await open(opened.mountSource, constants.O_RDONLY);
    const content = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= maxBytes; length += read) {
      ({ bytesRead: read } = await file.read(content, length, content.length - length));
    }
    if (length > maxBytes) throw new FileError("EFBIG", relativePath, `EFBIG: more than ${maxBytes} bytes`);
    return new Uint8Array(content.subarray(0, length));
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  } finally {
    await walk.close();
  }
}
