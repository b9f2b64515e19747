import { readFileSync } from "node:fs";
import { dirname } from "node:path/posix";

/** One line of /proc/self/mountinfo (proc_pid_mountinfo(5)). */
export interface MountInfo {
  readonly id: number;
  readonly parentId: number;
  /** `major:minor` of the file system, equal for all its mounts. */
  readonly device: string;
  /** The mounted directory of the file system: not `/` for a bind mount of a part. */
  readonly root: string;
  readonly target: string;
  readonly fileSystem: string;
  readonly source: string;
  /** Options of this mount. */
  readonly options: readonly string[];
  /** Mounts below it propagate to other mount namespaces (`shared:`). */
  readonly isShared: boolean;
  /** Options of the file system, shared by all its mounts; for cgroup v1 they name the controllers. */
  readonly superOptions: readonly string[];
}

/** Parses a mountinfo file, read as latin1 so that a path's escaped and raw bytes can be combined. */
export function parseMountInfo(latin1Text: string): MountInfo[] {
  const mounts: MountInfo[] = [];
  for (const line of latin1Text.split("\n")) {
    // The optional fields end with a lone hyphen.
    const [mount, ...rest] = line.split(" - ");
    const [id, parentId, device, root, target, options, ...optional] = (mount ?? "").split(" ");
    const [fileSystem, source, superOptions] = rest.join(" - ").split(" ");
    if (id === undefined || parentId === undefined || device === undefined || root === undefined) continue;
    if (target === undefined || options === undefined || fileSystem === undefined || fileSystem === "") continue;
    mounts.push({
      id: Number(id),
      parentId: Number(parentId),
      device,
      root: unescape(root),
      target: unescape(target),
      fileSystem: unescape(fileSystem),
      source: unescape(source ?? ""),
      options: options.split(","),
      isShared: optional.some((field) => field.startsWith("shared:")),
      // A comma within a value is escaped.
      superOptions: (superOptions ?? "").split(",").map((option) => unescape(option)),
    });
  }
  return mounts;
}

/** The mounts of this process's namespace, in mount order. */
export function readMountInfo(): MountInfo[] {
  return parseMountInfo(readMountTable().toString("latin1"));
}

/**
 * This process's mount table as the kernel writes it: thousands of lines on a full node. The kernel has them in memory,
 * so a round trip to another thread would cost more than the read.
 */
export function readMountTable(): Buffer {
  return readFileSync("/proc/self/mountinfo");
}

/** The device that each mount point of a table shows: that of the last mount there. Pure. */
export function mountDevices(latin1Table: string): Map<string, string> {
  return new Map(
    latin1Table.split("\n").flatMap((line) => {
      const [, , device, , target] = line.split(" ", 5);
      return device === undefined || target === undefined ? [] : [[unescape(target), device]];
    }),
  );
}

/** statfs(2) of a btrfs. */
const btrfsType = 0x91_23_68_3e;

/**
 * The number of the file system of a path: st_dev, but on a btrfs, whose subvolumes have one each, that of its mount.
 * Pure.
 * @param path its st_dev, and the type of its file system by statfs(2)
 * @param mount where it is mounted, by the table
 */
export function fileSystemNumberOf(
  path: { readonly dev: number; readonly type: number },
  mount: Pick<MountInfo, "device">,
): number {
  const [, major, minor] = /^(\d+):(\d+)$/u.exec(mount.device) ?? [];
  if (path.type !== btrfsType || major === undefined) return path.dev;
  // As the kernel encodes st_dev: eight bits of the minor number, the major number, the rest of the minor number.
  return (Number(minor) % 256) + Number(major) * 256 + Math.floor(Number(minor) / 256) * 2 ** 20;
}

/** The mounts at and below a path without links, in mount order. Parses only their lines. */
export function mountsBelow(table: Buffer, path: string): MountInfo[] {
  if (path === "/") return parseMountInfo(table.toString("latin1"));
  return linesWith(table, ` ${escape(path)}`).filter(({ target }) => target === path || target.startsWith(`${path}/`));
}

/** The mounts at and above a path without links: all that its resolution may cross. Parses only their lines. */
export function mountsAbove(table: Buffer, path: string): MountInfo[] {
  const found: MountInfo[] = [];
  for (let at = path; ; at = dirname(at)) {
    found.push(...linesWith(table, ` ${escape(at)} `).filter(({ target }) => target === at));
    if (at === "/") return found;
  }
}

/** The mounts whose mount point begins with `text` in the kernel's notation. */
function linesWith(table: Buffer, text: string): MountInfo[] {
  let lines = "";
  for (let at = table.indexOf(text, 0, "latin1"); at !== -1;) {
    const start = table.lastIndexOf(newline, at) + 1;
    const next = table.indexOf(newline, at);
    const end = next === -1 ? table.length : next + 1;
    if (isMountPoint(table, start, at)) lines += table.toString("latin1", start, end);
    at = table.indexOf(text, at + 1, "latin1");
  }
  return lines === "" ? [] : parseMountInfo(lines);
}

const [newline, space] = [10, 32];

/** Whether `at` is the fifth field of its line. */
function isMountPoint(table: Buffer, start: number, at: number): boolean {
  let spaces = 0;
  for (let before = start; before < at; before++) if (table[before] === space) spaces++;
  return spaces === 3;
}

/** A mount point in the kernel's notation, in latin1. */
function escape(path: string): string {
  const bytes = Buffer.from(path, "utf8").toString("latin1");
  return bytes.replaceAll(/[ \t\n\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`);
}

/** The kernel writes space, tab, newline and backslash (and sometimes `#`) as a backslash and three octal digits. */
export function unescape(field: string): string {
  if (/^[\x20-\x5b\x5d-\x7e]*$/.test(field)) return field;
  const bytes = field.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}
