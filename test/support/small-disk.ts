import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system in a file, mounted at a path until it is disposed of. */
export class SmallDisk implements Disposable {
  readonly #directory: string;
  readonly #path: string;

  /** @param options of mkfs.ext4, or of mkfs.xfs if the first is `xfs` */
  constructor(path: string, mebibytes: number, ...options: readonly string[]) {
    this.#path = path;
    this.#directory = mkdtempSync(join(tmpdir(), "podwright-disk-"));
    const image = join(this.#directory, "image");
    execFileSync("truncate", ["-s", `${mebibytes}M`, image]);
    const [kind, ...others] = options;
    if (kind === "xfs") execFileSync("mkfs.xfs", ["-q", ...others, image]);
    else execFileSync("mkfs.ext4", ["-q", "-F", "-m", "0", ...options, image]);
    mkdirSync(path, { recursive: true });
    execFileSync("mount", ["-o", "loop", image, path]);
  }

  /** Also unmounts the kubelet's mounts there. */
  [Symbol.dispose](): void {
    for (let left = 8; left > 0; left--) {
      try {
        execFileSync("umount", ["-l", this.#path], { stdio: "ignore" });
      } catch {
        break;
      }
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
