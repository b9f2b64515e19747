import { basename, dirname, join } from "node:path/posix";
import { errorMessage } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import { maxManifestBytes, tooBig } from "./decode.ts";
import { ManifestError } from "../yaml/manifest-error.ts";
import type { SourceDependencies } from "./source.ts";
import {
  equalBytes,
  isEmptyText,
  ProblemReporter,
  staticPodsOf,
  type StaticManifests,
  tellWarnings,
  type RejectedManifest,
} from "./static-manifests.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";

export interface FileSourceConfig {
  /** staticPodPath: a directory or one file, absolute. */
  readonly path: string;
  /** fileCheckFrequency. */
  readonly periodMs: number;
}

/** Recheck interval of a bad file that had pods: it may be in the middle of a change. */
const soonMs = 1000;

interface KnownFile extends StaticManifests {
  readonly bytes: Uint8Array;
}

interface WatchedDirectory {
  /** Without symbolic links. */
  readonly directory: string;
  /** Its identity, if it exists. */
  readonly inode?: number;
  readonly device?: number;
  /** The file that a name in it is, as {@link FileSource} knows it. */
  readonly path: (name: string) => string;
}

/** What stood at the path the last time. */
type Listing = { readonly files: readonly string[] } | { readonly problem: string };

/**
 * Static pods from staticPodPath: read on inotify events, and every fileCheckFrequency in any case. Names that start
 * with a dot and subdirectories are ignored.
 *
 * Removing a file removes its pods, and a file that was removed and added again restarts them, however quickly: this is
 * how people restart static pods. A file that is unreadable, invalid or empty keeps its last pods, so that a
 * half-written file never stops a pod; upstream stops it. Without earlier pods, its valid documents count.
 */
export class FileSource {
  readonly #deps: SourceDependencies & { readonly files: Files };
  readonly #config: FileSourceConfig;
  readonly #reporter: ProblemReporter;
  #known = new Map<string, KnownFile>();
  /** Names of files removed since the last check, which may exist again. */
  #removed = new Set<string>();
  #delivered = false;

  constructor(deps: SourceDependencies & { readonly files: Files }, config: FileSourceConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#reporter = new ProblemReporter(deps);
  }

  /** The present problems of files, for display. */
  get rejected(): RejectedManifest[] {
    return this.#reporter.rejected;
  }

  /** Reads and watches until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const wait = new WakeableWait(this.#deps.clock, "changes of static pod manifests");
    let watch: { readonly of: WatchedDirectory; readonly handle: Disposable } | undefined;
    try {
      while (!signal.aborted) {
        const of = await this.#directoryToWatch();
        // Watched before it is read, so that no change is missed; re-watched when the directory was replaced.
        if (watch?.of.directory !== of.directory || watch.of.inode !== of.inode || watch.of.device !== of.device) {
          watch?.handle[Symbol.dispose]();
          watch = { of, handle: this.#watch(of, wait, () => (watch = undefined)) };
        }
        await this.refresh();
        await wait.for(this.#isDisturbed ? Math.min(soonMs, this.#config.periodMs) : this.#config.periodMs, signal);
      }
    } finally {
      watch?.handle[Symbol.dispose]();
    }
  }

  /** Reads everything once and delivers it if it changed. Never rejects. */
  async refresh(): Promise<void> {
    const listing = await this.#listing();
    const { path } = this.#config;
    if ("problem" in listing) {
      this.#reporter.set(path, [{ message: listing.problem }]);
      return;
    }
    const removed = this.#removed;
    this.#removed = new Set();
    const known = new Map<string, KnownFile>();
    let changed = !this.#delivered;
    for (const file of listing.files) {
      const before = this.#known.get(file);
      const now = await this.#readFile(file, removed.has(file) ? undefined : before);
      if (now !== undefined) known.set(file, now);
      if (now !== before) changed = true;
    }
    if (known.size !== this.#known.size) changed = true;
    const startedAnew = [...removed].filter((file) => known.has(file) && (this.#known.get(file)?.pods.length ?? 0) > 0);
    this.#known = known;
    this.#reporter.keepOnly(new Set([...listing.files, path]));
    if (!changed) return;
    this.#delivered = true;
    if (startedAnew.length > 0) this.#deliver(known, new Set(startedAnew));
    this.#deliver(known);
  }

  #deliver(known: ReadonlyMap<string, KnownFile>, without: ReadonlySet<string> = new Set()): void {
    const pods = [...known].flatMap(([file, { pods: own }]) => (without.has(file) ? [] : own));
    this.#deps.deliver({ pods, complete: true });
  }

  /** True while pods are kept whose file no longer defines them. */
  get #isDisturbed(): boolean {
    return [...this.#known.values()].some(({ pods, errors }) => pods.length > 0 && errors.length > 0);
  }

  async #directoryToWatch(): Promise<WatchedDirectory> {
    const { path } = this.#config;
    const { files } = this.#deps;
    const parent = { directory: dirname(path), path: (name: string) => join(dirname(path), name) };
    try {
      const real = await files.realPath(path);
      const found = await files.stat(real);
      if (found?.type === "directory") return { ...found, directory: real, path: (name) => join(path, name) };
      const directory = dirname(real);
      // The path may be a link of another name.
      const pathOf = (name: string): string => (name === basename(real) ? path : join(directory, name));
      return { ...(await files.stat(directory)), directory, path: pathOf };
    } catch {
      return parent;
    }
  }

  #watch({ directory, path }: WatchedDirectory, wait: WakeableWait, onEnd: () => void): Disposable {
    return this.#deps.files.watchEntries(
      directory,
      (removed) => {
        for (const name of removed) this.#removed.add(path(name));
        wait.wake();
      },
      (error) => {
        this.#deps.log.debug("watch of manifests ended; the next periodic check restarts it", {
          directory,
          error: errorMessage(error),
        });
        onEnd();
      },
    );
  }

  async #listing(): Promise<Listing> {
    const { path } = this.#config;
    const { files } = this.#deps;
    try {
      const real = await files.realPath(path);
      const type = (await files.stat(real))?.type;
      if (type === "file") return { files: [path] };
      if (type !== "directory") return { problem: `${path}: is neither a directory nor a file` };
      const names = (await files.list(real)).map((entry) => entry.name).filter((name) => !name.startsWith("."));
      this.#reporter.set(path, []);
      return { files: names.toSorted().map((name) => join(path, name)) };
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "ENOENT") return { problem: errorMessage(error) };
      this.#reporter.set(path, [{ message: `${path}: does not exist; its pods start once it does` }]);
      return { files: [] };
    }
  }

  /** What the file gives now; undefined when it is gone or no file. */
  async #readFile(path: string, before: KnownFile | undefined): Promise<KnownFile | undefined> {
    const { files } = this.#deps;
    let bytes: Uint8Array;
    try {
      const type = (await files.stat(await files.realPath(path)))?.type;
      if (type !== "file") {
        const message = `${path}: is a ${type ?? "vanished file"}; only the files of ${basename(dirname(path))} are read`;
        this.#reporter.set(path, [{ message }]);
        return undefined;
      }
      bytes = await files.read(path, maxManifestBytes);
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return undefined;
      const big = error instanceof FileError && error.code === "EFBIG";
      this.#reporter.set(path, [big ? tooBig(path) : { message: `${path}: ${errorMessage(error)}` }]);
      return before;
    }
    if (before !== undefined && equalBytes(before.bytes, bytes)) {
      this.#reporter.set(path, before.errors);
      return before;
    }
    const now = this.#parse(bytes, path, before?.pods.length ?? 0);
    tellWarnings(this.#deps, path, now.pods);
    this.#reporter.set(path, now.errors);
    const pods = now.errors.length > 0 && before !== undefined ? before.pods : now.pods;
    return { ...now, pods, bytes };
  }

  /**
   * Overwriting a file empties it first, and may stop there on a full disk: an empty file that had pods is an error,
   * not a request for none.
   */
  #parse(bytes: Uint8Array, path: string, podsBefore: number): StaticManifests {
    if (podsBefore > 0 && isEmptyText(bytes)) {
      return {
        pods: [],
        errors: [new ManifestError({ file: path }, "is empty; its pods keep running; remove the file to stop them")],
      };
    }
    return staticPodsOf(bytes, path, { kind: "file", path }, this.#deps.nodeName);
  }
}
