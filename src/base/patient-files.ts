import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";

/** What records of earlier runs are read and written by. */
export type RecordFiles = Pick<
  Files,
  "list" | "makeDirectory" | "read" | "remove" | "rename" | "stat" | "write" | "writeAtomic"
>;

/** The disk, or the machine, did not manage to read; the same call may succeed in a moment. */
const passing: ReadonlySet<string> = new Set(["EAGAIN", "EINTR", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ESTALE"]);
const againMs = 100;
const patienceMs = 3000;
const impatientMs = 60_000;

/**
 * Files whose reads are repeated for up to 3 s if they fail for a reason that may pass: what an earlier run recorded is
 * read once, and without it a pod that ended would start again. After one that did not pass, reads fail at once for a
 * minute, so that a broken disk delays a start only once.
 */
export class PatientFiles implements RecordFiles {
  readonly #files: RecordFiles;
  readonly #clock: Pick<Clock, "monotonic" | "sleep">;
  /** When a read last failed for good, monotonic ms. */
  #gaveUpMs = Number.NEGATIVE_INFINITY;

  constructor(files: RecordFiles, clock: Pick<Clock, "monotonic" | "sleep">) {
    this.#files = files;
    this.#clock = clock;
  }

  async list(...of: Parameters<Files["list"]>): ReturnType<Files["list"]> {
    return await this.#again(async () => await this.#files.list(...of));
  }

  async read(...of: Parameters<Files["read"]>): ReturnType<Files["read"]> {
    return await this.#again(async () => await this.#files.read(...of));
  }

  async stat(...of: Parameters<Files["stat"]>): ReturnType<Files["stat"]> {
    return await this.#again(async () => await this.#files.stat(...of));
  }

  async makeDirectory(...of: Parameters<Files["makeDirectory"]>): Promise<void> {
    await this.#files.makeDirectory(...of);
  }

  async remove(...of: Parameters<Files["remove"]>): Promise<void> {
    await this.#files.remove(...of);
  }

  async rename(...of: Parameters<Files["rename"]>): Promise<void> {
    await this.#files.rename(...of);
  }

  async write(...of: Parameters<Files["write"]>): Promise<void> {
    await this.#files.write(...of);
  }

  async writeAtomic(...of: Parameters<Files["writeAtomic"]>): Promise<void> {
    await this.#files.writeAtomic(...of);
  }

  async #again<T>(read: () => Promise<T>): Promise<T> {
    const beganMs = this.#clock.monotonic();
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof FileError && passing.has(error.code))) throw error;
        const nowMs = this.#clock.monotonic();
        if (nowMs - this.#gaveUpMs < impatientMs) throw error;
        if (nowMs - beganMs >= patienceMs) {
          this.#gaveUpMs = nowMs;
          throw error;
        }
        await this.#clock.sleep("the disk to be read again", againMs);
      }
    }
  }
}
