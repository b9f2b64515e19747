import { closeSync, readSync } from "node:fs";
import { openCLibrary } from "../processes/c-library.ts";

/** Learns which names are removed from a directory: deleted, or moved elsewhere. */
export interface Removals extends Disposable {
  /** An event of `fs.watch` on that directory. */
  saw(event: string, name: string | null): void;
  /** The removed names since the last call, whether or not they exist again. */
  take(): ReadonlySet<string>;
}

/**
 * Uses inotify where Node.js can call C functions (`node:ffi`, 26.1 or newer), else `fs.watch` events.
 * @param modules access to Node.js' built-in modules
 */
export function watchRemovals(directory: string, modules?: (name: string) => unknown): Removals {
  try {
    return new InotifyRemovals(directory, modules);
  } catch {
    return new RenameCounts();
  }
}

// <sys/inotify.h>
const inNonBlock = 0o4000;
const inCloseOnExec = 0o2000000;
const inMovedFrom = 0x40;
const inDelete = 0x200;
const inOnlyDirectory = 0x01000000;
/** wd, mask, cookie and len, four bytes each; then the name, padded with NUL to len bytes. */
const headBytes = 16;
const lengthAt = 12;
const bufferBytes = 16 * 1024;

/**
 * A second inotify instance beside that of `fs.watch`, which does not distinguish a removed name from a new one. It is
 * read only after `fs.watch` has reported something; the kernel has queued the same here by then. So nothing waits for
 * it, neither the event loop nor a thread. It queues removals only; an overflow loses them.
 */
class InotifyRemovals implements Removals {
  /** Negative: closed. */
  #descriptor: number;

  /** @throws when the system call, or inotify, is not available */
  constructor(directory: string, modules: ((name: string) => unknown) | undefined) {
    const library = openCLibrary(modules);
    const addWatch = library("inotify_add_watch", ["int32", "string", "uint32"], "int32");
    this.#descriptor = library("inotify_init1", ["int32"], "int32")(inNonBlock | inCloseOnExec);
    if (this.#descriptor < 0) throw new Error("inotify is not available");
    if (addWatch(this.#descriptor, directory, inMovedFrom | inDelete | inOnlyDirectory) >= 0) return;
    this[Symbol.dispose]();
    throw new Error(`cannot watch ${directory}`);
  }

  saw(): void {
    // The kernel has queued the event.
  }

  take(): ReadonlySet<string> {
    const names = new Set<string>();
    const buffer = Buffer.allocUnsafe(bufferBytes);
    for (let bytes = this.#read(buffer); bytes > 0; bytes = this.#read(buffer)) {
      for (let at = 0; at + headBytes <= bytes;) {
        const end = at + headBytes + buffer.readUInt32LE(at + lengthAt);
        const [name = ""] = buffer.toString("utf8", at + headBytes, end).split("\0", 1);
        // The events for the end of the watch and of the queue have no name.
        if (name !== "") names.add(name);
        at = end;
      }
    }
    return names;
  }

  [Symbol.dispose](): void {
    if (this.#descriptor >= 0) closeSync(this.#descriptor);
    this.#descriptor = -1;
  }

  #read(buffer: Buffer): number {
    try {
      return readSync(this.#descriptor, buffer);
    } catch {
      // EAGAIN: the queue is empty.
      return 0;
    }
  }
}

/**
 * `fs.watch` reports only `rename` for a name that appears or disappears: two in a row count as a removal and a return.
 * Two files moved to one name in quick succession look the same.
 */
class RenameCounts implements Removals {
  readonly #counts = new Map<string, number>();

  saw(event: string, name: string | null): void {
    if (event === "rename" && name !== null) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  take(): ReadonlySet<string> {
    const names = new Set([...this.#counts].flatMap(([name, count]) => (count > 1 ? [name] : [])));
    this.#counts.clear();
    return names;
  }

  [Symbol.dispose](): void {
    this.#counts.clear();
  }
}
