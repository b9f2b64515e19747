import { constants } from "node:fs";
import { chmod, chown, type FileHandle, lchown, lstat, open, opendir } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { orAborted } from "../../base/abort.ts";
import { errorMessage } from "../../base/errors.ts";
import { Places } from "../../base/places.ts";
import { FileError } from "../../ports/files.ts";
import { type GroupAccess, groupMode, type GroupRefusal, isGivenToGroup } from "../../ports/volume-files.ts";
import { errnoOf } from "../file-error.ts";
import { systemClock } from "../processes/clock.ts";
import { descriptorPath, O_PATH } from "./descriptor-path.ts";
import type { FarStorage, FarStorageFinder } from "./far-storage.ts";
import { mountAnswers } from "./remote-storage.ts";
import { inStorage } from "./storage-helpers.ts";
import { StorageWork } from "./storage-work.ts";
import { topFlags } from "./volume-calls.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
/** Maximum depth of an ownership change: each level holds a file descriptor. */
export const maxDepth = 256;
/**
 * A larger tree is left to a thread of its own, which takes a tenth of the time for each file and none of this one's;
 * to start it takes as long as some hundred files.
 */
const fewFiles = 1_000;

/** Threads at work at a time; more while some are slow: on a node that starts each claim may need one. */
const threadPlaces = new Places(
  { clock: systemClock },
  { kind: "a thread that changes the group of files", limit: 4, patienceMs: 5_000 },
);

/** See `VolumeFiles.giveToGroup`. */
export async function giveToGroup(
  root: string,
  access: GroupAccess,
  disks: FarStorageFinder,
  signal?: AbortSignal,
): Promise<number> {
  const storage = disks.farStorageOf(root);
  if (storage !== undefined) return await giveFar(storage, root, access, signal);
  // The walk looks at the places of other mounts in the tree. What is wrong with those is not the volume's fault.
  const below = disks.farStorageBelow(root);
  return await (below === undefined
    ? giveLocal(root, access, signal)
    : giveInThread({ root, access, storage: below }, signal));
}

/** Storage may hang at any file. A thread that it blocks is not one of the few that Node.js has for all file work. */
async function giveFar(
  storage: FarStorage,
  root: string,
  access: GroupAccess,
  signal: AbortSignal | undefined,
): Promise<number> {
  // By a process that can be killed, which no thread can be.
  if (storage.isRemote) await mountAnswers(storage.target, signal);
  StorageWork.throwIfHanging(storage);
  if (access.onlyOnRootMismatch && (await isGiven(storage, root, access, signal))) return 0;
  return await giveInThread({ root, access, storage }, signal);
}

/** Most volumes are, and need no thread. */
async function isGiven(
  storage: FarStorage,
  root: string,
  { gid, readOnly, onlyOnRootMismatch, followsTop }: GroupAccess,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const access = { gid, readOnly, onlyOnRootMismatch, ...(followsTop && { followsTop }) };
  const asked = inStorage(storage, "isGivenToGroup", root, access);
  const settled = asked.then(
    () => {},
    () => {},
  );
  if (signal !== undefined) await orAborted(settled, signal);
  signal?.throwIfAborted();
  return await asked;
}

async function giveLocal(root: string, access: GroupAccess, signal: AbortSignal | undefined): Promise<number> {
  await using top = await open(root, topFlags(access));
  const info = await top.stat();
  if (access.onlyOnRootMismatch && isGivenToGroup({ gid: info.gid, mode: info.mode & 0o7777 }, access)) return 0;
  const gift = new SmallGroupGift(access, info.dev, signal);
  try {
    await using readable = await open(`${descriptorPath(top.fd)}/`, O_RDONLY | O_DIRECTORY);
    await gift.giveTree(readable, 0);
  } catch (error) {
    if (error !== tooMany) throw error;
    // Its own, since it may outlast the caller: another file would get the number of one that is closed.
    const own = await open(`${descriptorPath(top.fd)}/`, O_RDONLY | O_DIRECTORY);
    // The top directory was looked at. What was refused is refused again.
    const rest = { root, top: own, access: { ...access, onlyOnRootMismatch: false } };
    return gift.changed + (await giveInThread(rest, signal));
  }
  if (gift.refusals.first !== undefined) access.onRefusal?.(gift.refusals.first);
  return gift.changed;
}

/**
 * As upstream, a change that fails leaves the file as it is, whatever the reason: a full file system or an exceeded quota
 * would otherwise keep the pod that could make room from starting, and one damaged file every pod of its volume.
 */
export class GroupRefusals {
  #first: string | undefined;
  #files = 0;

  /** Of one file. @param problems of its changes that failed @throws one that means that the file is gone */
  add(problems: readonly unknown[]): void {
    for (const problem of problems) {
      if (errnoOf(problem) === "ENOENT") throw problem;
      this.#first ??= errorMessage(problem);
    }
    if (problems.length > 0) this.#files++;
  }

  get first(): GroupRefusal | undefined {
    return this.#first === undefined ? undefined : { files: this.#files, problem: this.#first };
  }
}

const tooMany = new Error("the tree has many files");

class SmallGroupGift {
  /** Files so far. */
  changed = 0;
  readonly refusals = new GroupRefusals();
  readonly #access: GroupAccess;
  readonly #device: number;
  readonly #signal: AbortSignal | undefined;
  #left = fewFiles;

  constructor(access: GroupAccess, device: number, signal: AbortSignal | undefined) {
    this.#access = access;
    this.#device = device;
    this.#signal = signal;
  }

  /** Changes the contents of the directory, then the directory itself. */
  async giveTree(directory: FileHandle, depth: number): Promise<void> {
    if (depth > maxDepth) throw tooDeep();
    // Names are bytes; latin1 preserves each of them.
    for await (const { name } of await opendir(`${descriptorPath(directory.fd)}/`, { encoding: "latin1" })) {
      this.#signal?.throwIfAborted();
      if (this.#left-- === 0) throw tooMany;
      const path = Buffer.concat([Buffer.from(`${descriptorPath(directory.fd)}/`), Buffer.from(name, "latin1")]);
      try {
        await this.#giveEntry(path, depth);
      } catch (error) {
        // Removed meanwhile.
        if (errnoOf(error) !== "ENOENT") throw error;
      }
    }
    await this.#give(directory);
  }

  async #giveEntry(path: Buffer, depth: number): Promise<void> {
    if ((await lstat(path)).isSymbolicLink()) {
      await this.#change([() => lchown(path, -1, this.#access.gid)]);
      return;
    }
    await using entry = await open(path, O_PATH | O_NOFOLLOW);
    const info = await entry.stat();
    if (info.isSymbolicLink() || info.dev !== this.#device) return;
    if (!info.isDirectory()) return await this.#give(entry);
    await using directory = await open(`${descriptorPath(entry.fd)}/`, O_RDONLY | O_DIRECTORY);
    await this.giveTree(directory, depth + 1);
  }

  async #give(handle: FileHandle): Promise<void> {
    const info = await handle.stat();
    const before = info.mode & 0o7777;
    const mode = groupMode(before, info.isDirectory(), this.#access.readOnly);
    if (info.gid === this.#access.gid && mode === before) return;
    const path = descriptorPath(handle.fd);
    // After the change of group, which clears the setuid and setgid bits.
    await this.#change([() => chown(path, -1, this.#access.gid), () => chmod(path, mode)]);
  }

  async #change(steps: readonly (() => Promise<void>)[]): Promise<void> {
    const problems: unknown[] = [];
    for (const step of steps) await step().catch((error: unknown) => problems.push(error));
    this.refusals.add(problems);
    if (problems.length < steps.length) this.changed++;
  }
}

export function tooDeep(): FileError {
  const message = `ENAMETOOLONG: the volume is nested deeper than ${maxDepth} directories`;
  return new FileError("ENAMETOOLONG", "", message);
}

/** What the thread gets. */
export interface GroupWork {
  readonly root: string;
  /** Undefined: the thread opens it, and reports more often. */
  readonly top: FileHandle | undefined;
  readonly access: Omit<GroupAccess, "onProgress" | "onRefusal">;
  /** It ends once this is not 0. */
  readonly stop: Int32Array;
}

/** What the thread says: periodically how many files it has inspected, finally how many it has changed, or why it failed. */
export type GroupWorkSaid =
  | { readonly files: number }
  | { readonly changed: number; readonly refusal: GroupRefusal | undefined }
  | { readonly code: string; readonly message: string };

/** A file takes no memory that stays. */
const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 };
/** Of the bundle, or of the sources. */
const program = new URL(`group-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

interface ThreadGift extends Pick<GroupWork, "root"> {
  readonly top?: FileHandle;
  readonly access: GroupAccess;
  /** Where the tree, or a part of it, may hang. */
  readonly storage?: FarStorage;
}

/**
 * Gives the tree to the group in a thread of its own. Once the signal aborts nothing waits for it: it ends after the file
 * at hand, which may take as long as storage does not respond, and is counted until then.
 */
async function giveInThread(gift: ThreadGift, signal: AbortSignal | undefined): Promise<number> {
  let place: Disposable | undefined;
  let work: StorageWork | undefined;
  try {
    place = await threadPlaces.take("later", signal ?? AbortSignal.any([]));
    work = gift.storage && new StorageWork(gift.storage);
  } catch (error) {
    place?.[Symbol.dispose]();
    await gift.top?.close();
    throw error;
  }
  const ended = (): void => {
    place[Symbol.dispose]();
    work?.[Symbol.dispose]();
  };
  return await runThread(gift, { goesOn: () => work?.goesOn(), ended }, signal);
}

async function runThread(
  { root, top, access }: ThreadGift,
  { goesOn, ended }: { readonly goesOn: () => void; readonly ended: () => void },
  signal: AbortSignal | undefined,
): Promise<number> {
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const { onProgress, onRefusal, ...rest } = access;
  const workerData: GroupWork = { root, top, access: rest, stop };
  const thread = new Worker(program, { workerData, transferList: top === undefined ? [] : [top], resourceLimits });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  thread.on("message", (said: GroupWorkSaid) => {
    goesOn();
    if ("files" in said) {
      onProgress?.(said.files);
    } else if ("changed" in said) {
      if (said.refusal !== undefined) onRefusal?.(said.refusal);
      resolve(said.changed);
    } else reject(new FileError(said.code, root, said.message));
  });
  thread.once("error", reject);
  thread.once("exit", () => {
    ended();
    reject(new FileError("EIO", root, "EIO: the thread that changes the group has ended"));
  });
  const settled = promise.then(
    () => {},
    () => {},
  );
  if (signal !== undefined) await orAborted(settled, signal);
  if (signal?.aborted === true) {
    Atomics.store(stop, 0, 1);
    thread.unref();
    signal.throwIfAborted();
  }
  return await promise;
}
