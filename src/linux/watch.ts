import { lstatSync, watch, type FSWatcher } from "node:fs";
import { FileError, type Files } from "../ports/files.ts";
import { systemClock } from "./clock.ts";
import { fileError } from "./file-error.ts";

/** Changes mostly come in bursts (create, write, chmod, rename): one call for all within this time. */
const burstMs = 20;

/**
 * Watches a directory by inotify. When it cannot be watched, or is removed or moved away, `onError` is called once,
 * never synchronously, and nothing after it. A watch keeps the process alive until it is disposed of.
 */
export const watchDirectory: Files["watch"] = (directory, onChange, onError) => {
  return new DirectoryWatch(directory, onChange, onError);
};

class DirectoryWatch implements Disposable {
  readonly #directory: string;
  readonly #onChange: () => void;
  readonly #onError: (error: Error) => void;
  readonly #inode: number | undefined;
  readonly #watcher: FSWatcher | undefined;
  /** The end of the burst that is under way, or the report of a failure. */
  #wait: Disposable | undefined;
  #ended = false;

  constructor(directory: string, onChange: () => void, onError: (error: Error) => void) {
    this.#directory = directory;
    this.#onChange = onChange;
    this.#onError = onError;
    try {
      this.#inode = this.#currentInode();
      this.#watcher = watch(directory);
      this.#watcher.on("change", () => this.#onEvent());
      this.#watcher.on("error", (error) => this.#fail(error));
    } catch (error) {
      this.#fail(error);
    }
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    this.#wait?.[Symbol.dispose]();
    this.#watcher?.close();
  }

  #onEvent(): void {
    if (this.#ended || this.#wait !== undefined) return;
    this.#wait = systemClock.timer(`changes of ${this.#directory} to settle`, burstMs, () => {
      this.#wait = undefined;
      try {
        // inotify follows the inode: once the path names another one, no change there would be seen.
        if (this.#currentInode() !== this.#inode) throw gone(this.#directory);
      } catch (error) {
        this.#fail(error);
        return;
      }
      this.#onChange();
    });
  }

  #currentInode(): number {
    return lstatSync(this.#directory).ino;
  }

  #fail(error: unknown): void {
    if (this.#ended) return;
    this[Symbol.dispose]();
    this.#wait = systemClock.timer(`the end of watching ${this.#directory}`, 0, () => {
      this.#onError(fileError(error, this.#directory));
    });
  }
}

function gone(directory: string): FileError {
  return new FileError("ENOENT", directory, `ENOENT: another directory took the place of '${directory}'`);
}
