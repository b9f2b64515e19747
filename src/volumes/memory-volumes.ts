import type { Mounts } from "../ports/mounts.ts";

/** Mounts tmpfs volumes. Their content is kept out of swap if the kernel supports it. */
export class MemoryVolumes {
  readonly #mounts: Pick<Mounts, "mount">;
  /** Kernels before 6.4 and user namespaces have no `noswap`: once rejected, it is not tried again. */
  #hasNoswap = true;

  constructor(mounts: Pick<Mounts, "mount">) {
    this.#mounts = mounts;
  }

  /**
   * @param bytes its size; 0: unlimited
   * @returns whether its content may be swapped to disk
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

/** The error messages of mount(8), older and newer versions. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /bad option|unknown parameter|turning off swap/i.test(error.message);
}
