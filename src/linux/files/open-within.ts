import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { FileError, type OpenedObject } from "../../ports/files.ts";
import { onPath } from "../file-error.ts";
import { descriptorPath } from "./descriptor-path.ts";
import { typeOf } from "./file-type.ts";
import { Walk } from "./walk.ts";

/** See {@link Files.openWithin}. Pipes and devices are found and not opened. */
export async function openWithin(directory: string, relativePath: string): Promise<OpenedObject> {
  const walk = await Walk.from(directory, { makes: false });
  try {
    await walk.follow(relativePath.split("/"));
    await using found = await walk.result();
    const path = `${directory}/${relativePath}`;
    return found.isFile || found.isDirectory ? await readable(path, found.mountSource, found.isFile) : unreadable(path);
  } finally {
    await walk.close();
  }
}

/** @param source names the object itself, so that this is no other one */
async function readable(path: string, source: string, isFile: boolean): Promise<OpenedObject> {
  const handle = await open(source, constants.O_RDONLY);
  try {
    const { size } = await handle.stat();
    return {
      type: isFile ? "file" : "directory",
      size,
      read: (offset, length) =>
        onPath(path, async () => {
          const { buffer, bytesRead } = await handle.read(new Uint8Array(length), 0, length, offset);
          return buffer.subarray(0, bytesRead);
        }),
      list: () =>
        onPath(path, async () => {
          const entries = await readdir(descriptorPath(handle.fd), { withFileTypes: true });
          return entries.map((entry) => ({ name: entry.name, type: typeOf(entry) }));
        }),
      [Symbol.asyncDispose]: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function unreadable(path: string): OpenedObject {
  const refuse = async (): Promise<never> => {
    throw new FileError("EINVAL", path, `EINVAL: not a regular file: '${path}'`);
  };
  return { type: "other", size: 0, read: refuse, list: refuse, [Symbol.asyncDispose]: async () => {} };
}
