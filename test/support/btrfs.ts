import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { zstdDecompressSync } from "node:zlib";
import { needsRoot, testDirectory } from "../../src/linux/processes/testing.ts";

/*
 * btrfs.zst is a disk of 16 MiB, so that no machine needs the tools of btrfs:
 *
 *     truncate -s 16M disk && mkfs.btrfs --mixed -n 4096 -m single -d single disk && mount -o loop disk m && mkdir m/volume
 *     p=m/volume; for i in 1 2 3 4 5 6 7; do mkdir $p/directory; p=$p/directory/subvolume
 *       btrfs subvolume create $p; echo $i > $p/file; done; umount m; zstd -19 disk -o btrfs.zst
 */
const image = new URL("btrfs.zst", import.meta.url);

export interface Btrfs extends Disposable {
  /** Its top directory; `volume` is in it. */
  readonly path: string;
}

/** Of the directory in a subvolume, and the subvolume in it. */
export const inSubvolume = "directory/subvolume";
/** One in another, in `volume`. */
export const subvolumes = 7;

/** The `skip` value of a test that needs a btrfs: the reason, or false. */
export function noBtrfs(): string | false {
  if (needsRoot() !== false) return needsRoot();
  if (!existsSync("/dev/loop-control")) return "the kernel has no loop devices";
  return /^\tbtrfs$/mu.test(readFileSync("/proc/filesystems", "utf8")) ? false : "the kernel has no btrfs";
}

/** A new btrfs, unmounted when disposed of. */
export function mountedBtrfs(): Btrfs {
  const directory = testDirectory();
  const [disk, path] = [directory.join("disk"), directory.join("mounted")];
  writeFileSync(disk, zstdDecompressSync(readFileSync(image)));
  mkdirSync(path);
  execFileSync("mount", ["-t", "btrfs", "-o", "loop", disk, path]);
  return {
    path,
    [Symbol.dispose]: () => {
      execFileSync("umount", ["--recursive", path]);
      directory[Symbol.dispose]();
    },
  };
}
