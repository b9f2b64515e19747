import type { Compression } from "../ports/compression.ts";
import { FileError, type Files } from "../ports/files.ts";

const mark = new TextEncoder().encode("packed:");
const maxBytes = 1 << 30;

/** Compresses files of the simulated disk by prefixing a mark: indistinguishable from gzip for its users. */
export function simCompression(files: Files): Compression {
  return {
    gzip: async (from, to, mode) => {
      if ((await files.stat(to)) !== undefined) throw new FileError("EEXIST", to, `EEXIST: file exists: '${to}'`);
      await files.write(to, Buffer.concat([mark, await plain(files, from)]), mode);
    },
    async *gunzip(path) {
      const data = await plain(files, path);
      if (Buffer.compare(data.subarray(0, mark.length), mark) !== 0) {
        throw new FileError("EINVAL", path, `EINVAL: damaged packed file: '${path}'`);
      }
      yield data.subarray(mark.length);
    },
    gzipText: async (text) => Buffer.concat([mark, Buffer.from(text)]),
  };
}

/** The content of a regular file. */
async function plain(files: Files, path: string): Promise<Uint8Array> {
  return files.readRange(path, 0, maxBytes, { noFollow: true });
}
