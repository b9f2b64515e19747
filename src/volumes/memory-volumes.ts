import type { Mounts } from "../ports/mounts.ts";

/** Mounts memory file systems for volumes. What is in them stays off the disk where the kernel can see to that. */
export class MemoryVolumes {
  readonly #mounts: Pick<Mounts, "mount">;
  /** Kernels before 6.4 and user namespaces have no `noswap`: what was refused once is not tried for each pod. */
  #hasNoswap = true;

  constructor(mounts: Pick<Mounts, "mount">) {
    this.#mounts = mounts;
  }

  /**
   * @param bytes its size; 0: no limit
   * @returns whether what is in it may be swapped to disk
   */
  async mount(directory: string, bytes: bigint): Promise<{ readonly mayBeSwapped: boolean }> {
    const options = bytes > 0n ? [`size=${bytes}`] : [];
    const mount = { source: "tmpfs", target: directory, fileSystem: "tmpfs" };
    if (this.#hasNoswap) {
      try {
        await this.#mounts.mount({ ...mount, options: [...options, "noswap"] });
        return { mayBeSwapped: false };
      } catch (error) {
        await this.#mounts.mount({ ...mount, options });
        this.#hasNoswap = !isRefusal(error);
        return { mayBeSwapped: true };
      }
    }
    await this.#mounts.mount({ ...mount, options });
    return { mayBeSwapped: true };
  }
}

/** mount(8)'s words for it, of its older and its newer versions. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /bad option|unknown parameter|turning off swap/i.test(error.message);
}
