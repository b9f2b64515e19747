import { join } from "node:path/posix";
import { FileError } from "../ports/files.ts";
import type { FileSystemUsage } from "../ports/stats-files.ts";
import {
  type GroupAccess,
  groupMode,
  isGivenToGroup,
  type OpenedVolumePath,
  type PathKind,
  type VolumeFiles,
} from "../ports/volume-files.ts";
import type { MemoryFiles } from "./files.ts";

/** Of every simulated file system. */
const simUsage: FileSystemUsage = {
  capacityBytes: 1 << 30,
  availableBytes: 3 << 28,
  usedBytes: 1 << 28,
  inodes: 1 << 16,
  inodesFree: (1 << 16) - 100,
};

/** {@link VolumeFiles} on in-memory files: same checks, no concurrent changes. */
export class SimVolumeFiles implements VolumeFiles {
  readonly #files: MemoryFiles;
  readonly #refusesGroups: (root: string) => boolean;

  /** @param refusesGroups whether the storage of a volume lets nobody change groups, as an export with root_squash */
  constructor(files: MemoryFiles, refusesGroups: (root: string) => boolean = () => false) {
    this.#files = files;
    this.#refusesGroups = refusesGroups;
  }

  async kind(path: string): Promise<PathKind | undefined> {
    const real = await this.#realPath(path);
    const type = real === undefined ? undefined : (await this.#files.stat(real))?.type;
    if (type === "file" && real?.startsWith("/dev/") === true) return "blockDevice";
    // Nothing else than sockets is neither.
    return type === "other" ? "socket" : type === "symlink" ? "other" : type;
  }

  async create(path: string, kind: "directory" | "file"): Promise<void> {
    await (kind === "directory" ? this.#files.makeDirectory(path, 0o755) : this.#files.append(path, "", 0o644));
  }

  async groupOf(path: string): Promise<number> {
    return this.#files.ownerOf(await this.#files.realPath(path))?.gid ?? 0;
  }

  async openBeneath(root: string, relativePath: string): Promise<OpenedVolumePath> {
    const top = await this.#files.realPath(root);
    const mode = (await this.#files.stat(top))?.mode ?? 0;
    let here = top;
    for (const component of relativePath.split("/").filter((part) => part !== "" && part !== ".")) {
      const path = join(here, component);
      if ((await this.#files.stat(path)) === undefined) await this.#files.makeDirectory(path, mode);
      here = await this.#files.realPath(path);
      if (here !== top && !here.startsWith(`${top}/`)) {
        throw new FileError("EXDEV", root, `EXDEV: the path leads out of the volume '${root}'`);
      }
    }
    const info = await this.#files.stat(here);
    const [device, inode] = [info?.device ?? 0, info?.inode ?? 0];
    return {
      mountSource: here,
      isDirectory: info?.type === "directory",
      device,
      inode,
      isShownAt: async (path) => {
        const shown = await this.#files.stat(path);
        return shown?.device === device && shown.inode === inode;
      },
      [Symbol.asyncDispose]: async () => {},
    };
  }

  async readBeneath(root: string, relativePath: string, maxBytes: number): Promise<Uint8Array | undefined> {
    const top = await this.#files.realPath(root);
    const real = await this.#realPath(join(top, relativePath));
    if (real === undefined) return undefined;
    if (!real.startsWith(`${top}/`)) throw new FileError("EXDEV", root, `EXDEV: the path leads out of '${root}'`);
    if ((await this.#files.stat(real))?.type !== "file") throw new FileError("EINVAL", real, "EINVAL: not a file");
    return await this.#files.read(real, maxBytes);
  }

  async giveToGroup(top: string, access: GroupAccess, signal?: AbortSignal): Promise<number> {
    const root = access.followsTop === true ? await this.#files.realPath(top) : top;
    const info = await this.#files.stat(root);
    const gid = this.#files.ownerOf(root)?.gid ?? 0;
    if (access.onlyOnRootMismatch && info !== undefined && isGivenToGroup({ gid, mode: info.mode }, access)) return 0;
    signal?.throwIfAborted();
    if (this.#refusesGroups(root)) {
      const { length } = await this.#files.list(root);
      access.onRefusal?.({ files: length + 1, problem: `EPERM: operation not permitted, chown '${root}'` });
      return 0;
    }
    let [changed, files] = [0, 0];
    for (const { name, type } of await this.#files.list(root)) {
      access.onProgress?.(++files);
      if (type === "directory") {
        changed += await this.giveToGroup(`${root}/${name}`, { ...access, onlyOnRootMismatch: false });
      } else if (type !== "symlink") {
        changed += await this.#give(`${root}/${name}`, access);
      }
    }
    return changed + (await this.#give(root, access));
  }

  async usage(path: string): Promise<FileSystemUsage> {
    if ((await this.kind(path)) === undefined) throw new FileError("ENOENT", path, `ENOENT: '${path}'`);
    return { ...simUsage };
  }

  async #give(path: string, { gid, readOnly }: GroupAccess): Promise<number> {
    const info = await this.#files.stat(path);
    const owner = this.#files.ownerOf(path);
    if (info === undefined || owner === undefined) return 0;
    const mode = groupMode(info.mode, info.type === "directory", readOnly);
    if (owner.gid === gid && mode === info.mode) return 0;
    await this.#files.chown(path, owner.uid, gid);
    await this.#files.chmod(path, mode);
    return 1;
  }

  async #realPath(path: string): Promise<string | undefined> {
    try {
      return await this.#files.realPath(path);
    } catch {
      return undefined;
    }
  }
}
