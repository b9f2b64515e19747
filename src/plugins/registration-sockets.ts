import type { DirectoryEntry, Files } from "../ports/files.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";

/** Where sockets are looked for. */
export interface SocketFiles {
  readonly files: Pick<Files, "list" | "stat" | "realPath">;
  readonly volumeFiles: Pick<VolumeFiles, "kind">;
}

/** A socket by which a plugin registers. */
export interface RegistrationSocket {
  readonly path: string;
  /** Tells one socket from the next of its name. */
  readonly identity: string;
}

export interface FoundSockets {
  readonly sockets: readonly RegistrationSocket[];
  /** Every directory below, the top one included: each is to be watched. */
  readonly directories: readonly string[];
}

/** How deep plugins' directories are looked through, and how many there may be: nobody needs more. */
const [deepest, most] = [4, 200];

/**
 * The sockets in a directory and those below it, as upstream's watcher finds them: names that begin with a dot are passed
 * over, links to sockets are followed, links to directories are not.
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
  // One that is gone, or replaced by something else, meanwhile.
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
    // Gone meanwhile, or a link that leads nowhere.
    return [];
  }
}
