import { lstatSync, watch, type FSWatcher } from "node:fs";
import { FileError, type Files } from "../../ports/files.ts";
import { systemClock } from "../processes/clock.ts";
import { fileError } from "../file-error.ts";
import { type Removals, watchRemovals } from "./removals.ts";

/** Changes mostly come in bursts (create, write, chmod, rename): those within this time make one call. */
const burstMs = 20;

/**
 * Watches a directory by inotify. When it cannot be watched, or is removed or moved away, `onError` is called once,
 * asynchronously, and nothing afterwards. A watch keeps the process alive until it is disposed of.
 */
export const watchDirectory: Files["watch"] = (directory, onChange, onError) => {
  return new DirectoryWatch(directory, onChange, onError);
};

/** Like {@link watchDirectory}, and reports removed names. */
export const watchEntries: Files["watchEntries"] = (directory, onChange, onError) => {
  return new DirectoryWatch(directory, onChange, onError, watchRemovals);
};

const noNames: ReadonlySet<string> = new Set();

class DirectoryWatch implements Disposable {
  readonly #directory: string;
  readonly #onChange: (removed: ReadonlySet<string>) => void;
  readonly #onError: (error: Error) => void;
  readonly #identity: string | undefined;
  readonly #watcher: FSWatcher | undefined;
  readonly #removals: Removals | undefined;
  /** The pending end of a burst, or the pending report of a failure. */
  #wait: Disposable | undefined;
  #ended = false;

  constructor(
    directory: string,
    onChange: (removed: ReadonlySet<string>) => void,
    onError: (error: Error) => void,
    removalsOf?: (directory: string) => Removals,
  ) {
    this.#directory = directory;
    this.#onChange = onChange;
    this.#onError = onError;
    try {
      this.#identity = this.#currentIdentity();
      this.#watcher = watch(directory);
      this.#removals = removalsOf?.(directory);
      this.#watcher.on("change", (event, name) => this.#onEvent(event, name));
      this.#watcher.on("error", (error) => this.#fail(error));
    } catch (error) {
      this.#fail(error);
    }
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    this.#wait?.[Symbol.dispose]();
    this.#watcher?.close();
    this.#removals?.[Symbol.dispose]();
  }

  #onEvent(event: string, name: string | Buffer | null): void {
    if (this.#ended) return;
    this.#removals?.saw(event, name === null ? null : String(name));
    if (this.#wait !== undefined) return;
    this.#wait = systemClock.timer(`changes of ${this.#directory} to settle`, burstMs, () => {
      this.#wait = undefined;
      const removed = this.#removals?.take() ?? noNames;
      try {
        // inotify follows the inode: once the path has another one, changes there would be missed.
        if (this.#currentIdentity() !== this.#identity) throw gone(this.#directory);
      } catch (error) {
        // Names removed before their directory are reported all the same.
        if (removed.size > 0) this.#onChange(removed);
        this.#fail(error);
        return;
      }
      this.#onChange(removed);
    });
  }

  /** The inode alone is not enough: the number of a removed one is soon reused. */
  #currentIdentity(): string {
    const { dev, ino, birthtimeNs } = lstatSync(this.#directory, { bigint: true });
    return `${dev} ${ino} ${birthtimeNs}`;
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
  return new FileError("ENOENT", directory, `ENOENT: the directory was replaced: '${directory}'`);
}
