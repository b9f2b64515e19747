import { workerData, parentPort } from "node:worker_threads";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lchownSync,
  lstatSync,
  opendirSync,
  openSync,
  type Stats,
} from "node:fs";
import { errorMessage } from "../../base/errors.ts";
import { groupMode } from "../../ports/volume-files.ts";
import { errnoOf } from "../file-error.ts";
import { descriptorPath, O_PATH } from "./descriptor-path.ts";
import { type GroupWork, type GroupWorkSaid, maxDepth, tooDeep } from "./group-gift.ts";

/*
 * The thread that gives a large tree to a group. It may block: everything is a plain call of the system, without the
 * cost of Node.js's promises, which is ten times that of the call.
 */

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
const filesPerReport = 1_000;

const { top, gid, readOnly, stop } = workerData as GroupWork;
const device = fstatSync(top.fd).dev;
let [files, changed] = [0, 0];

function say(said: GroupWorkSaid): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port between threads has no origin
  parentPort?.postMessage(said);
}

/** Changes the contents of the directory, then the directory itself. Returns false if it was stopped before. */
function giveTree(directory: number, depth: number): boolean {
  if (depth > maxDepth) throw tooDeep();
  const path = `${descriptorPath(directory)}/`;
  const entries = opendirSync(path, { encoding: "latin1" });
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      if (Atomics.load(stop, 0) !== 0) return false;
      if (++files % filesPerReport === 0) say({ files });
      if (!giveEntry(Buffer.from(path + entry.name, "latin1"), depth)) return false;
    }
  } finally {
    entries.closeSync();
  }
  give(directory, fstatSync(directory));
  return true;
}

function giveEntry(path: Buffer, depth: number): boolean {
  try {
    const info = lstatSync(path);
    if (info.isSymbolicLink()) {
      lchownSync(path, -1, gid);
      changed++;
      return true;
    }
    // Whatever takes its name now has not been there before, or is its group's too.
    if (!info.isDirectory() && isGiven(info)) return true;
    const entry = openSync(path, O_PATH | O_NOFOLLOW);
    try {
      return giveOpened(entry, depth);
    } finally {
      closeSync(entry);
    }
  } catch (error) {
    // Removed meanwhile.
    if (errnoOf(error) !== "ENOENT") throw error;
    return true;
  }
}

function giveOpened(entry: number, depth: number): boolean {
  const info = fstatSync(entry);
  if (info.isSymbolicLink() || info.dev !== device) return true;
  if (!info.isDirectory()) {
    give(entry, info);
    return true;
  }
  const directory = openSync(`${descriptorPath(entry)}/`, O_RDONLY | O_DIRECTORY);
  try {
    return giveTree(directory, depth + 1);
  } finally {
    closeSync(directory);
  }
}

function modeOf(info: Stats): number {
  return groupMode(info.mode & 0o7777, info.isDirectory(), readOnly);
}

function isGiven(info: Stats): boolean {
  return info.gid === gid && modeOf(info) === (info.mode & 0o7777);
}

function give(handle: number, info: Stats): void {
  if (isGiven(info)) return;
  const path = descriptorPath(handle);
  chownSync(path, -1, gid);
  // After the change of group, which clears the setuid and setgid bits.
  chmodSync(path, modeOf(info));
  changed++;
}

try {
  giveTree(top.fd, 0);
  say({ changed });
} catch (error) {
  say({ code: errnoOf(error) ?? "EIO", message: errorMessage(error) });
} finally {
  await top.close();
}
