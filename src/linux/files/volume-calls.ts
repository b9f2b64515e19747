import { constants } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { FileError } from "../../ports/files.ts";
import { type GroupAccess, isGivenToGroup, type OpenedPath, type PathKind } from "../../ports/volume-files.ts";
import { errnoOf } from "../file-error.ts";
import { O_PATH } from "./descriptor-path.ts";
import { Walk } from "./walk.ts";

/*
 * Short work on the files of volumes: in this process on the node's own disks, and in a process of its own elsewhere, whose
 * storage may hang at each of these calls.
 */

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** To look at the top directory, which a server may not let be read. */
export function topFlags({ followsTop }: Pick<GroupAccess, "followsTop">): number {
  return O_PATH | O_DIRECTORY | (followsTop === true ? 0 : O_NOFOLLOW);
}

export interface FileIdentity {
  readonly device: number;
  readonly inode: number;
}

export const volumeCalls = {
  /** See `VolumeFiles.kind`. */
  async kind(path: string): Promise<PathKind | undefined> {
    const info = await unlessMissing(stat(path));
    if (info === undefined) return undefined;
    if (info.isDirectory()) return "directory";
    if (info.isFile()) return "file";
    if (info.isSocket()) return "socket";
    if (info.isCharacterDevice()) return "characterDevice";
    return info.isBlockDevice() ? "blockDevice" : "other";
  },

  /** See `VolumeFiles.create`; only in a process without a umask. */
  async create(path: string, kind: "directory" | "file"): Promise<void> {
    if (kind === "directory") await mkdir(path, { recursive: true, mode: 0o755 });
    else await (await open(path, "a", 0o644)).close();
  },

  async groupOf(path: string): Promise<number> {
    return (await stat(path)).gid;
  },

  /** What exists at a path; undefined: nothing. */
  async identityOf(path: string): Promise<FileIdentity | undefined> {
    const info = await unlessMissing(stat(path));
    return info && { device: info.dev, inode: info.ino };
  },

  /** Whether a volume's top directory is its group's. It may be one that may not be read. */
  async isGivenToGroup(root: string, access: GroupAccess): Promise<boolean> {
    await using top = await open(root, topFlags(access));
    const { gid, mode } = await top.stat();
    return isGivenToGroup({ gid, mode: mode & 0o7777 }, access);
  },

  /** See `VolumeFiles.openBeneath`. */
  async openBeneath(root: string, relativePath: string): Promise<OpenedPath> {
    const walk = await Walk.from(root, { makes: true });
    try {
      await walk.follow(relativePath.split("/"));
      return await walk.result();
    } catch (error) {
      await walk.close();
      throw error;
    }
  },

  /** See `VolumeFiles.readBeneath`. */
  async readBeneath(root: string, relativePath: string, maxBytes: number): Promise<Uint8Array | undefined> {
    const walk = await Walk.from(root, { makes: false });
    try {
      await walk.follow(relativePath.split("/"));
      await using opened = await walk.result();
      if (!opened.isFile) throw new FileError("EINVAL", relativePath, "EINVAL: not a regular file");
      await using file = await open(opened.mountSource, O_RDONLY);
      const content = Buffer.alloc(maxBytes + 1);
      let length = 0;
      for (let read = -1; read !== 0 && length <= maxBytes; length += read) {
        ({ bytesRead: read } = await file.read(content, length, content.length - length));
      }
      if (length > maxBytes) throw new FileError("EFBIG", relativePath, `EFBIG: more than ${maxBytes} bytes`);
      return new Uint8Array(content.subarray(0, length));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    } finally {
      await walk.close();
    }
  },
};

export type VolumeCalls = typeof volumeCalls;

async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "");
}
