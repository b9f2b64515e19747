import type { MemoryFiles } from "./files.ts";
import type { SimMounts } from "./machine.ts";

/** Volumes of a driver that an earlier kubelet used on the machine: only the driver may remove them. */
export class ForeignVolumes {
  readonly #files: MemoryFiles;
  readonly #mounts: SimMounts;
  /** Directories of volumes that the driver has mounted. */
  readonly #volumes = new Set<string>();

  constructor(files: MemoryFiles, mounts: SimMounts) {
    this.#files = files;
    this.#mounts = mounts;
  }

  /** The driver mounts a volume in the pod's directory. */
  mount(podDirectory: string): string {
    const volume = `${podDirectory}/volumes/kubernetes.io~csi/pvc-1`;
    if (this.#volumes.has(volume)) return volume;
    this.#volumes.add(volume);
    const target = `${volume}/mount`;
    void this.#files.makeDirectory(target, 0o750);
    void this.#files.write(`${target}/data`, "precious", 0o600);
    void this.#mounts.mount({ source: "/dev/sdb", target, fileSystem: "ext4", options: [] });
    return volume;
  }

  /** The driver unmounts it, and leaves empty directories. */
  unmount(volume: string): void {
    this.#volumes.delete(volume);
    void this.#mounts.unmount(`${volume}/mount`);
    void this.#files.remove(`${volume}/mount/data`);
  }

  /** The machine is switched off, which ends the mounts. */
  powerOff(): void {
    for (const volume of [...this.#volumes]) this.unmount(volume);
  }

  /** One is mounted, which podwright cannot know. */
  get areMounted(): boolean {
    return this.#volumes.size > 0;
  }

  /** A volume that something else unmounted or whose data was removed; undefined: none. */
  damaged(): string | undefined {
    return [...this.#volumes].find((volume) => {
      const isThere = this.#files.ownerOf(`${volume}/mount/data`) !== undefined;
      return !isThere || this.#mounts.anyBelow(volume) === undefined;
    });
  }
}
