import type { Files } from "../ports/files.ts";

/** Watches of a changing set of directories. A failed watch is restarted by the next {@link set}. */
export class DirectoryWatches implements Disposable {
  readonly #files: Pick<Files, "watchEntries">;
  readonly #onChange: (removed: readonly string[]) => void;
  readonly #watches = new Map<string, Disposable>();

  /** @param onChange gets the paths that were deleted or moved away, whether or not they exist again */
  constructor(files: Pick<Files, "watchEntries">, onChange: (removed: readonly string[]) => void) {
    this.#files = files;
    this.#onChange = onChange;
  }

  /** Watches exactly these; true if some were not watched before. */
  set(directories: readonly string[]): boolean {
    for (const [directory, watch] of this.#watches) {
      if (directories.includes(directory)) continue;
      watch[Symbol.dispose]();
      this.#watches.delete(directory);
    }
    const fresh = directories.filter((directory) => !this.#watches.has(directory));
    for (const directory of fresh) this.#watch(directory);
    return fresh.length > 0;
  }

  [Symbol.dispose](): void {
    for (const watch of this.#watches.values()) watch[Symbol.dispose]();
    this.#watches.clear();
  }

  #watch(directory: string): void {
    const watch = this.#files.watchEntries(
      directory,
      (removed) => this.#onChange([...removed].map((name) => `${directory}/${name}`)),
      () => {
        if (this.#watches.get(directory) === watch) this.#watches.delete(directory);
        this.#onChange([]);
      },
    );
    this.#watches.set(directory, watch);
  }
}
