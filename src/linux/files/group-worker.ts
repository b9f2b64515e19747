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
import { groupMode, isGivenToGroup } from "../../ports/volume-files.ts";
import { errnoOf } from "../file-error.ts";
import { descriptorPath, O_PATH } from "./descriptor-path.ts";
import { GroupRefusals, type GroupWork, type GroupWorkSaid, maxDepth, tooDeep } from "./group-gift.ts";
import { topFlags } from "./volume-calls.ts";

/*
 * The thread that gives a tree to a group that is large, or in storage that may hang. It may block: everything is a plain
 * call of the system, without the cost of Node.js's promises, which is ten times that of the call.
 */

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

const { root, top, access, stop } = workerData as GroupWork;
const { gid, readOnly } = access;
/** Slow storage does as many in much less than the time after which it counts as hanging. */
const filesPerReport = top === undefined ? 10 : 1_000;
const refusals = new GroupRefusals();
let [device, files, changed] = [0, 0, 0];

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
      change(() => lchownSync(path, -1, gid));
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
  // After the change of group, which clears the setuid and setgid bits.
  change(
    () => chownSync(path, -1, gid),
    () => chmodSync(path, modeOf(info)),
  );
}

function change(...steps: readonly (() => void)[]): void {
  const problems: unknown[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      problems.push(error);
    }
  }
  refusals.add(problems);
  if (problems.length < steps.length) changed++;
}

function giveTop(opened: number): void {
  const info = fstatSync(opened);
  ({ dev: device } = info);
  if (access.onlyOnRootMismatch && isGivenToGroup({ gid: info.gid, mode: info.mode & 0o7777 }, access)) return;
  const readable = openSync(`${descriptorPath(opened)}/`, O_RDONLY | O_DIRECTORY);
  try {
    giveTree(readable, 0);
  } finally {
    closeSync(readable);
  }
}

/** Of this thread, which alone it may block. */
function giveRoot(): void {
  const opened = openSync(root, topFlags(access));
  try {
    giveTop(opened);
  } finally {
    closeSync(opened);
  }
}

function outcome(): GroupWorkSaid {
  try {
    if (top === undefined) giveRoot();
    else giveTop(top.fd);
    return { changed, refusal: refusals.first };
  } catch (error) {
    return { code: errnoOf(error) ?? "EIO", message: errorMessage(error) };
  }
}

const end = outcome();
// Whoever learns of the end may unmount.
await top?.close();
say(end);
