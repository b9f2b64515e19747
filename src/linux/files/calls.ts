import * as fs from "node:fs";

/**
 * File system calls used when pods start and end, as promises. Each is a round trip to another thread, which costs
 * several times what the kernel needs. A `FileHandle` of `node:fs/promises` adds one more for its stat and one for its
 * close, and takes twice as long for each.
 *
 * What the kernel answers from its own memory (`fstatSync` and `closeSync` of directories and of the node's own files,
 * `/proc`) is called synchronously instead. Calls that a disk or a server may block never are.
 */

type Path = string | Buffer;

function call<T>(start: (done: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => (error === null ? resolve(value) : reject(error)));
  });
}

async function writeAll(file: Descriptor, data: string | Uint8Array): Promise<void> {
  let rest = typeof data === "string" ? Buffer.from(data) : data;
  while (rest.length > 0) {
    const bytes = rest;
    rest = rest.subarray(await call<number>((done) => fs.write(file, bytes, 0, bytes.length, null, done)));
  }
}

/** An open file. Its opener closes it, by `close` or by leaving the scope of a {@link Closing}. */
export type Descriptor = number;

/** File system calls through other threads. */
export const threadCalls = {
  mkdir: (path: Path, mode: number): Promise<void> => call((done) => fs.mkdir(path, mode, done)),
  rmdir: (path: Path): Promise<void> => call((done) => fs.rmdir(path, done)),
  unlink: (path: Path): Promise<void> => call((done) => fs.unlink(path, done)),
  rename: (from: Path, to: Path): Promise<void> => call((done) => fs.rename(from, to, done)),
  symlink: (target: string, path: string): Promise<void> => call((done) => fs.symlink(target, path, done)),
  chmod: (path: string, mode: number): Promise<void> => call((done) => fs.chmod(path, mode, done)),
  stat: (path: string): Promise<fs.Stats> => call((done) => fs.stat(path, done)),
  lstat: (path: string): Promise<fs.Stats> => call((done) => fs.lstat(path, done)),
  realpath: (path: string): Promise<string> => call((done) => fs.realpath.native(path, done)),
  readLink: (path: string): Promise<string> => call((done) => fs.readlink(path, done)),
  readdir: (path: Path, encoding: "utf8" | "latin1" = "utf8"): Promise<fs.Dirent[]> =>
    call((done) => fs.readdir(path, { withFileTypes: true, encoding }, done)),
  open: (path: Path, flags: number, mode?: number): Promise<Descriptor> =>
    call((done) => fs.open(path, flags, mode, done)),
  close: (file: Descriptor): Promise<void> => call((done) => fs.close(file, done)),
  fstat: (file: Descriptor): Promise<fs.Stats> => call((done) => fs.fstat(file, done)),
  fchmod: (file: Descriptor, mode: number): Promise<void> => call((done) => fs.fchmod(file, mode, done)),
  fsync: (file: Descriptor): Promise<void> => call((done) => fs.fsync(file, done)),
  /** @returns bytes read; 0 at the end of the file */
  read: (file: Descriptor, into: Uint8Array, offset: number, position: number | null): Promise<number> =>
    call((done) => fs.read(file, into, offset, into.length - offset, position, done)),
  /** Writes all data at the current position. */
  writeAll,
};

/** The same calls in whichever way they are made. */
export type FileCalls = typeof threadCalls;

/**
 * Closes files at the end of its scope, synchronously: only for those whose close cannot block, such as directories and
 * the node's own files.
 */
export class Closing implements Disposable {
  readonly #file: Descriptor;

  constructor(file: Descriptor) {
    this.#file = file;
  }

  [Symbol.dispose](): void {
    fs.closeSync(this.#file);
  }
}
