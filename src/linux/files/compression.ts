import { constants } from "node:fs";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createGunzip, createGzip, gzip as gzipBytes } from "node:zlib";
import type { Compression } from "../../ports/compression.ts";
import { FileError } from "../../ports/files.ts";
import { errnoOf, fileError, onPath } from "../file-error.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

const pieceBytes = 64 * 1024;

/** {@link Compression} by Node's zlib, in its thread pool. */
export const systemCompression: Compression = {
  gzip: (from, to, mode, signal) => onPath(from, () => gzip(from, to, mode, signal)),
  gunzip,
  gzipText: async (text) => await promisify(gzipBytes)(text),
};

async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new FileError("EINVAL", path, `EINVAL: not a regular file: '${path}'`);
}

/** Not a stream of the file handle: that would prevent closing the handle. */
async function* piecesOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  for (;;) {
    const piece = new Uint8Array(pieceBytes);
    const { bytesRead } = await file.read(piece, 0, pieceBytes, null);
    if (bytesRead === 0) return;
    yield piece.subarray(0, bytesRead);
  }
}

async function gzip(from: string, to: string, mode: number, signal: AbortSignal | undefined): Promise<void> {
  await using source = await openRegular(from);
  const target = await open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode & 0o700);
  try {
    try {
      const write = async (packed: AsyncIterable<Uint8Array>): Promise<void> => {
        for await (const piece of packed) await target.writeFile(piece);
      };
      await pipeline(piecesOf(source), createGzip(), write, signal === undefined ? {} : { signal });
      await target.chmod(mode);
      await target.sync();
    } finally {
      await target.close();
    }
  } catch (error) {
    await unlink(to).catch(() => {});
    signal?.throwIfAborted();
    throw error;
  }
}

async function* gunzip(path: string): AsyncGenerator<Uint8Array> {
  try {
    await using file = await openRegular(path);
    const unpacker = createGunzip();
    const fed = pipeline(piecesOf(file), unpacker).catch(() => {});
    try {
      for await (const piece of unpacker) yield piece as Uint8Array;
    } finally {
      // When abandoned half-way, the last read ends before the file is closed.
      unpacker.destroy();
      await fed;
    }
  } catch (error) {
    const damaged = errnoOf(error)?.startsWith("Z_") === true;
    throw damaged ? new FileError("EINVAL", path, `EINVAL: damaged gzip file: '${path}'`) : fileError(error, path);
  }
}
