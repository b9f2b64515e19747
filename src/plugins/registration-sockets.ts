import type { DirectoryEntry, Files } from "../ports/files.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";

export interface SocketFiles {
  readonly files: Pick<Files, "list" | "stat" | "realPath">;
  readonly volumeFiles: Pick<VolumeFiles, "kind">;
}

/** A plugin's registration socket. */
export interface RegistrationSocket {
  readonly path: string;
  /** Distinguishes successive sockets with the same name. */
  readonly identity: string;
}

export interface FoundSockets {
  readonly sockets: readonly RegistrationSocket[];
  /** All directories to watch, including the top one. */
  readonly directories: readonly string[];
}

/** Limits of depth and number of plugins' directories, far above real ones. */
const [deepest, most] = [4, 200];

/**
 * The sockets in and below a directory, like upstream's watcher: ignores names that begin with a dot, follows links to
 * sockets, but not to directories.
 */
export async function findSockets({ files, volumeFiles }: SocketFiles, top: string): Promise<FoundSockets> {
  const sockets: RegistrationSocket[] = [];
  const directories: string[] = [];
  const visit = async (directory: string, depth: number): Promise<void> => {
    if (depth > deepest || directories.length + sockets.length >= most) return;
    directories.push(directory);
    for (const entry of await entriesOf(files, directory)) {
      if (entry.name.startsWith(".")) continue;
      const path = `${directory}/${entry.name}`;
      if (entry.type === "directory") await visit(path, depth + 1);
      else if (sockets.length < most) sockets.push(...(await socketAt({ files, volumeFiles }, path)));
    }
  };
  await visit(top, 0);
  return { sockets, directories };
}

async function entriesOf(files: Pick<Files, "list">, directory: string): Promise<readonly DirectoryEntry[]> {
  // Removed or replaced meanwhile.
  const entries = await files.list(directory).catch(() => []);
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

async function socketAt({ files, volumeFiles }: SocketFiles, path: string): Promise<readonly RegistrationSocket[]> {
  try {
    if ((await volumeFiles.kind(path)) !== "socket") return [];
    const target = await files.realPath(path);
    const found = await files.stat(target);
    if (found === undefined) return [];
    return [{ path, identity: `${target} ${found.device} ${found.inode} ${found.modified}` }];
  } catch {
    // Removed meanwhile, or a dangling link.
    return [];
  }
}
