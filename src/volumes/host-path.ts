import type { PathKind, VolumeFiles } from "../ports/volume-files.ts";
import { VolumeError } from "../runtime/volume-error.ts";

/** What a type requires, and upstream's term for it. */
const wanted: Readonly<
  Record<string, { readonly kind: PathKind; readonly called: string; readonly creates?: "directory" | "file" }>
> = {
  Directory: { kind: "directory", called: "a directory" },
  DirectoryOrCreate: { kind: "directory", called: "a directory", creates: "directory" },
  File: { kind: "file", called: "a file" },
  FileOrCreate: { kind: "file", called: "a file", creates: "file" },
  Socket: { kind: "socket", called: "a socket file" },
  CharDevice: { kind: "characterDevice", called: "a character device" },
  BlockDevice: { kind: "blockDevice", called: "a block device" },
};

/** Whether a host path matches its type; the empty type matches anything. */
export async function hostPathFits(volumeFiles: VolumeFiles, path: string, type: string): Promise<boolean> {
  return type === "" || (await volumeFiles.kind(path)) === wanted[type]?.kind;
}

/**
 * Creates what is missing if the type permits it: directories 0755, files 0644 in an existing directory. The empty type
 * requires nothing.
 * @throws VolumeError if something else exists there, FileError
 */
export async function setUpHostPath(
  volumeFiles: Pick<VolumeFiles, "kind" | "create">,
  path: string,
  type: string,
): Promise<void> {
  if (type === "") return;
  const want = Object.hasOwn(wanted, type) ? wanted[type] : undefined;
  if (want === undefined) throw new VolumeError(`${type} is an invalid volume type`);
  const found = await volumeFiles.kind(path);
  if (found === undefined && want.creates !== undefined) {
    await volumeFiles.create(path, want.creates);
  } else if (found !== want.kind) {
    throw new VolumeError(`hostPath type check failed: ${path} is not ${want.called}`);
  }
}
