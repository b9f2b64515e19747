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
/** Some runtimes delete asynchronously: how long to wait for the freed space. */
const patienceMs = 5000;
const lookMs = 500;

/**
 * The file system of image layers, as measured by the kernel. If containers have their own file system
 * (containerFilesystems of ImageFsInfo), this is still the one of the layers, because images are what is collected.
 */
export class ImageFileSystem {
  readonly #deps: ImageFileSystemDependencies;

  constructor(deps: ImageFileSystemDependencies) {
    this.#deps = deps;
  }

  /**
   * Its mount point.
   * @throws CriError; Error when the runtime reports none
   */
  async mountPoint(signal: AbortSignal): Promise<string> {
    const { imageFilesystems } = await this.#deps.images.imageFsInfo({}, { signal, timeoutMs });
    const mountPoint = imageFilesystems[0]?.fsId?.mountpoint ?? "";
    if (mountPoint === "") throw new Error("the runtime reports no image file system");
    return mountPoint;
  }

  /** @throws Error when it cannot be measured */
  async room(mountPoint: string): Promise<FileSystemRoom> {
    const room = await this.#deps.disk.fileSystem(mountPoint);
    if (room === undefined) throw new Error(`cannot measure the image file system at ${mountPoint}`);
    return room;
  }

  /** Waits briefly for the expected free space: some runtimes delete asynchronously. */
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
