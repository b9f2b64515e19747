import { closeSync, openSync } from "node:fs";
import { dirname } from "node:path/posix";
import { systemClock } from "../processes/clock.ts";
import { polled, pollEvents } from "../processes/poll.ts";
import { mountDevices, readMountTable } from "./mountinfo.ts";

const mountInfo = "/proc/self/mountinfo";

/**
 * This process's mount table, read only when the kernel says that a mount was added, moved, removed or remounted since
 * the last read (poll(2) on mountinfo, proc_pid_mountinfo(5)): a table of 250 pods takes the kernel two milliseconds to
 * write, and the poll some microseconds. Options of file systems, and whether mounts are shared, may be older.
 */
export class MountTable {
  readonly #read: () => Buffer;
  readonly #hasChanged: () => boolean;
  #table: Buffer | undefined;

  /** @param hasChanged whether there was a change since its last call */
  constructor(read: () => Buffer, hasChanged: () => boolean) {
    this.#read = read;
    this.#hasChanged = hasChanged;
  }

  current(): Buffer {
    // Asked before the read: what changes meanwhile is a change since this call.
    const isOld = this.#hasChanged();
    if (isOld || this.#table === undefined) {
      this.#table = undefined;
      this.#table = this.#read();
    }
    return this.#table;
  }
}

let processTable: MountTable | undefined;

/** The mounts that there are now, of {@link MountTable}. */
export function currentMountTable(): Buffer {
  processTable ??= new MountTable(readMountTable, changeOfMounts() ?? ((): boolean => true));
  return processTable.current();
}

/** The table is long on a full node, so measurements use one of at most this age. */
const recentMs = 1_000;
let recent: { readonly atMs: number; readonly table: Buffer } | undefined;

/** The table, at most {@link recentMs} old. */
export function recentMountTable(): Buffer {
  const nowMs = systemClock.monotonic();
  if (recent === undefined || nowMs - recent.atMs > recentMs) recent = { atMs: nowMs, table: currentMountTable() };
  return recent.table;
}

let recentMounts: { readonly table: Buffer; readonly devices: ReadonlyMap<string, string> } | undefined;

/** Where a path without links is mounted, by {@link recentMountTable}: the path is not accessed. */
export function recentMountOf(path: string): { readonly device: string; readonly target: string } {
  const table = recentMountTable();
  if (recentMounts?.table !== table) recentMounts = { table, devices: mountDevices(table.toString("latin1")) };
  for (let target = path; ; target = dirname(target)) {
    const device = recentMounts.devices.get(target);
    if (device !== undefined || target === "/") return { device: device ?? "", target };
  }
}

/** Undefined: Node.js cannot call poll(2). The descriptor stays open with the process. */
export function changeOfMounts(): (() => boolean) | undefined {
  const descriptor = openSync(mountInfo, "r");
  const hasChanged = polled(descriptor, pollEvents.priority);
  if (hasChanged === undefined) closeSync(descriptor);
  return hasChanged;
}
