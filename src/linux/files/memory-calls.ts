import * as fs from "node:fs";
import type { FileCalls } from "./calls.ts";

/**
 * The same calls on directories that the kernel keeps in memory (tmpfs). No disk can stall them, and a call from here
 * costs an eighth of a round trip to another thread.
 */
export const memoryCalls: FileCalls = {
  mkdir: async (path, mode) => {
    fs.mkdirSync(path, mode);
  },
  rmdir: async (path) => fs.rmdirSync(path),
  unlink: async (path) => fs.unlinkSync(path),
  rename: async (from, to) => fs.renameSync(from, to),
  symlink: async (target, path) => fs.symlinkSync(target, path),
  chmod: async (path, mode) => fs.chmodSync(path, mode),
  stat: async (path) => fs.statSync(path),
  lstat: async (path) => fs.lstatSync(path),
  realpath: async (path) => fs.realpathSync.native(path),
  readLink: async (path) => fs.readlinkSync(path),
  readdir: async (path, encoding) => fs.readdirSync(path, { withFileTypes: true, encoding }),
  open: async (path, flags, mode) => fs.openSync(path, flags, mode),
  close: async (file) => fs.closeSync(file),
  fstat: async (file) => fs.fstatSync(file),
  fchmod: async (file, mode) => fs.fchmodSync(file, mode),
  fsync: async (file) => fs.fsyncSync(file),
  read: async (file, into, offset, position) => fs.readSync(file, into, offset, into.length - offset, position),
  writeAll: async (file, data) => {
    let rest = typeof data === "string" ? Buffer.from(data) : data;
    while (rest.length > 0) rest = rest.subarray(fs.writeSync(file, rest));
  },
};
