import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { currentMountTable } from "./mount-table.ts";
import { unescape } from "./mountinfo.ts";

/**
 * Which paths lead to file systems that may stop responding while the node goes on: those of a server or another process,
 * and those on other disks than the node's own, as of a cloud or a storage network. The mount table tells them. Nothing
 * behind their mount points is accessed here, not even to resolve a link: that would block the whole process.
 */

/** Depend on a server or another process. An automounter's mount points lead to such file systems. */
const remoteKinds =
  "fuse|nfs|cifs|smb|ceph|9p|virtiofs|afs|gfs|ocfs|lustre|glusterfs|beegfs|orangefs|pvfs|autofs|gpfs|mmfs|wekafs|panfs|" +
  "cvfs|coda|scoutfs|dvs|vboxsf|vmhgfs";
const remoteKind = new RegExp(`^(?:${remoteKinds})(?!ctl)`, "u");
/**
 * In the kernel's memory; or an overlay, as each container's root is: its directories lie on disks that are mounted
 * themselves, almost always the node's own.
 */
const onNoDisk: ReadonlySet<string> = new Set([
  ...["tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs", "proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue"],
  ...["nsfs", "bpf", "tracefs", "debugfs", "securityfs", "configfs", "pstore", "efivarfs", "fusectl", "binfmt_misc"],
  ...["overlay", "selinuxfs", "resctrl", "rpc_pipefs", "nfsd"],
]);
/** Linux follows this many links for one path. */
const maxLinks = 40;

/** Whether file systems of the type depend on a server or another process. */
export function isRemote(fileSystem: string): boolean {
  return remoteKind.test(fileSystem);
}

export interface FarMount {
  readonly target: string;
  /** `major:minor`, the same for all mounts of the file system: they hang together. */
  readonly device: string;
  readonly fileSystem: string;
}

/** What a path leads to first that may stop responding. */
export interface FarStorage {
  /** Leads into it, and names it. */
  readonly target: string;
  /** Equal for all that hangs together. */
  readonly lane: string;
  readonly isRemote: boolean;
}

interface Mounted {
  readonly table: Buffer;
  /** The visible mount of each mount point. */
  readonly all: ReadonlyMap<string, FarMount>;
}

/** Of the last table. */
let mounted: Mounted | undefined;

function currentMounts(): Mounted {
  // Needs the current table: a thread that works in a new mount may hang forever.
  const table = currentMountTable();
  if (mounted?.table !== table) mounted = { table, all: mountsOnDisks(table.toString("latin1")) };
  return mounted;
}

/**
 * The mounts of a table that are on disks or behind servers, by mount point: the last one of each, which covers the
 * others. Pure, and quick: a full node has thousands of other mounts, and a new table with each start of a pod.
 */
export function mountsOnDisks(latin1Table: string): Map<string, FarMount> {
  const all = new Map<string, FarMount>();
  for (let dash = latin1Table.indexOf(" - "); dash !== -1; dash = latin1Table.indexOf(" - ", dash + 3)) {
    const fileSystem = latin1Table.slice(dash + 3, latin1Table.indexOf(" ", dash + 3));
    if (onNoDisk.has(fileSystem)) continue;
    const start = latin1Table.lastIndexOf("\n", dash) + 1;
    const [, , device = "", , name = ""] = latin1Table.slice(start, dash).split(" ", 5);
    const target = unescape(name);
    all.set(target, { target, device, fileSystem });
  }
  return all;
}

/** The far mount whose mount point is a path without links; undefined: there is none. */
export type FarMountAt = (target: string) => FarMount | undefined;

/** Which paths lead away from the node's own disks. */
export type FarStorageFinder = Pick<OwnDisks, "farStorageOf" | "farStorageIn" | "farStorageBelow">;

/** Tells the node's own disks from others. */
export class OwnDisks {
  readonly #directories: readonly string[];
  #own: { readonly table: Buffer; readonly devices: ReadonlySet<string> } | undefined;

  /** @param directories absolute: their disks count as the node's own, as does that of `/`, without which nothing goes on */
  constructor(directories: readonly string[] = []) {
    this.#directories = directories;
  }

  /** What a path leads to or through first; undefined: only the node's own disks, and memory. */
  farStorageOf(path: string): FarStorage | undefined {
    return farStorageOn(this.wayTo(path));
  }

  wayTo(path: string): Way {
    return wayTo(path, this.#farMounts());
  }

  /** Far storage that is mounted in the tree at a path, which itself is on the node's own disks. */
  farStorageBelow(path: string): FarStorage | undefined {
    const farMountAt = this.#farMounts();
    const start = startOf(wayTo(path, farMountAt).end);
    for (const target of currentMounts().all.keys()) {
      if (target.startsWith(start) && farMountAt(target) !== undefined) {
        return farStorageOn(wayTo(target, farMountAt));
      }
    }
    return undefined;
  }

  /**
   * Where a relative path in a volume may hang. Other file systems may be mounted in the tree, as by a container with
   * Bidirectional propagation, and a link may lead there that changes after this: then it counts as hanging in this volume,
   * and in no other storage that the link has pointed to.
   */
  farStorageIn(root: string, relativePath: string): FarStorage | undefined {
    const top = this.wayTo(root);
    if (top.far.length > 0) return farStorageOn(top);
    const way = this.wayTo(`${top.end}/${relativePath}`);
    if (way.far[0]?.target.startsWith(startOf(top.end)) === true) return farStorageOn(way);
    if (this.farStorageBelow(top.end) === undefined) return undefined;
    return { target: root, lane: `below ${top.end}`, isRemote: false };
  }

  #farMounts(): FarMountAt {
    const { table, all } = currentMounts();
    if (this.#own?.table !== table) this.#own = { table, devices: ownDevices(this.#directories, all) };
    const { devices } = this.#own;
    return (target) => {
      const mount = all.get(target);
      return mount === undefined || devices.has(mount.device) ? undefined : mount;
    };
  }
}

/** Of the paths below a path. */
function startOf(path: string): string {
  return path === "/" ? path : `${path}/`;
}

function ownDevices(directories: readonly string[], all: ReadonlyMap<string, FarMount>): Set<string> {
  const devices = new Set([all.get("/")?.device ?? ""]);
  for (const directory of directories) {
    const mount = mountOver(canonical(directory), all);
    // A server may hang, whatever is on it.
    if (mount !== undefined && !isRemote(mount.fileSystem)) devices.add(mount.device);
  }
  return devices;
}

/** Follows links of the node's own directory; a missing one will be made where its path says. */
function canonical(directory: string): string {
  try {
    return realpathSync(directory);
  } catch {
    return directory;
  }
}

function mountOver(path: string, all: ReadonlyMap<string, FarMount>): FarMount | undefined {
  for (let at = path; ; at = dirname(at)) {
    const mount = all.get(at);
    if (mount !== undefined || at === "/") return mount;
  }
}

const rootDisk = new OwnDisks();

/** The place of the first remote file system that a path leads to or through; undefined: there is none. */
export function remoteMountOf(path: string): string | undefined {
  const { far, end } = rootDisk.wayTo(path);
  return farStorageOn({ far: far.filter(({ fileSystem }) => isRemote(fileSystem)), end })?.target;
}

/** A path's way through far mounts. */
export interface Way {
  /** In this order. */
  readonly far: readonly FarMount[];
  /** The path without links, as far as the first of them. */
  readonly end: string;
}

/** Follows links up to the first far mount; what comes after is taken as it is written. */
export function wayTo(path: string, farMountAt: FarMountAt): Way {
  const pending = path.split("/");
  const far: FarMount[] = [];
  let [here, links] = ["/", 0];
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      here = dirname(here);
      continue;
    }
    const next = join(here, name);
    const mount = farMountAt(next);
    if (mount !== undefined) far.push(mount);
    const target = far.length > 0 ? undefined : linkAt(next);
    if (target === undefined) {
      here = next;
      continue;
    }
    if (++links > maxLinks) break;
    pending.unshift(...target.split("/"));
    if (target.startsWith("/")) here = "/";
  }
  return { far, end: here };
}

function linkAt(path: string): string | undefined {
  try {
    // Most are none, and an error costs more than this call.
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return isLink ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What a way leads to first that may hang. An automounter's directory itself does not: each place in it leads to a file
 * system of its own, which may be there already, or is mounted by the access. Pure.
 */
export function farStorageOn({ far, end }: Way): FarStorage | undefined {
  const mount = far.find(({ fileSystem }) => fileSystem !== "autofs");
  if (mount !== undefined) return storageAt(mount);
  const automounter = far.at(-1);
  if (automounter === undefined) return undefined;
  const { target, device } = automounter;
  const [place = ""] = end.slice(target.length + 1).split("/");
  const awaited = place === "" ? target : `${target}/${place}`;
  return { target: awaited, lane: `${device} ${awaited}`, isRemote: true };
}

function storageAt({ target, device, fileSystem }: FarMount): FarStorage {
  return { target, lane: device, isRemote: isRemote(fileSystem) };
}
