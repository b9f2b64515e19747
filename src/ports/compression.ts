/** gzip (RFC 1952). Works on streams: a file of any size needs a few hundred KiB of memory. */
export interface Compression {
  /**
   * Packs the regular file `from` into the new file `to`, which gets the mode and is on the disk when this resolves.
   * Neither path is followed through a final symbolic link. `to` must not exist (`EEXIST`); on failure nothing is left of
   * it. Rejects with `FileError`, or with the signal's reason.
   */
  gzip(from: string, to: string, mode: number, signal?: AbortSignal): Promise<void>;
  /**
   * The unpacked content of a regular file, in pieces of bounded size; not through a final symbolic link. Throws
   * `FileError`; `EINVAL` when the content is damaged.
   */
  gunzip(path: string): AsyncIterable<Uint8Array>;
  /** A text, packed. */
  gzipText(text: string): Promise<Uint8Array>;
}
