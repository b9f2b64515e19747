import type { Clock } from "../ports/clock.ts";
import type { CriImageService } from "../ports/cri.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import type { FileSystemRoom } from "./image-garbage.ts";

interface ImageFileSystemDependencies {
  readonly clock: Clock;
  readonly images: Pick<CriImageService, "imageFsInfo">;
  readonly disk: Pick<StatsFiles, "fileSystem">;
}

const timeoutMs = 30_000;
/** What the runtime deletes behind its answer is waited for so long. */
const patienceMs = 5000;
const lookMs = 500;

/**
 * The file system of the images' layers, as the kernel measures it. With layers and containers on file systems of their own
 * (containerFilesystems of ImageFsInfo) it is the layers' one: images are what is collected.
 */
export class ImageFileSystem {
  readonly #deps: ImageFileSystemDependencies;

  constructor(deps: ImageFileSystemDependencies) {
    this.#deps = deps;
  }

  /**
   * Where it is mounted.
   * @throws CriError; Error when the runtime names none
   */
  async mountPoint(signal: AbortSignal): Promise<string> {
    const { imageFilesystems } = await this.#deps.images.imageFsInfo({}, { signal, timeoutMs });
    const mountPoint = imageFilesystems[0]?.fsId?.mountpoint ?? "";
    if (mountPoint === "") throw new Error("the runtime names no image file system");
    return mountPoint;
  }

  /** @throws Error when nothing can be seen of it */
  async room(mountPoint: string): Promise<FileSystemRoom> {
    const room = await this.#deps.disk.fileSystem(mountPoint);
    if (room === undefined) throw new Error(`cannot measure the image file system at ${mountPoint}`);
    return room;
  }

  /** Waits a moment until it has as much room as is hoped for: some runtimes delete behind their answers. */
  async roomOnceFreed(
    mountPoint: string,
    isEnough: (room: FileSystemRoom) => boolean,
    signal: AbortSignal,
  ): Promise<FileSystemRoom> {
    const untilMs = this.#deps.clock.monotonic() + patienceMs;
    for (;;) {
      const room = await this.room(mountPoint);
      if (isEnough(room) || this.#deps.clock.monotonic() >= untilMs) return room;
      await this.#deps.clock.sleep("the runtime to free what it removed", lookMs, signal);
    }
  }
}
