import { errorMessage } from "../base/errors.ts";
import { Turns } from "../base/turns.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Logger } from "../ports/log.ts";
import { imageRecordName, isImageRecord, maxRecordBytes } from "./image-records.ts";
import { decodePullIntent, encodePullIntent } from "./pull-record.ts";

export interface PullIntentsDependencies {
  readonly files: Files;
  readonly hashing: Hashing;
  readonly log: Logger;
}

/**
 * How a pull ended. Recorded: the image has its record now. Failed: it pulled nothing. Unknown: it may have pulled the
 * image.
 */
export type PullEnd = "recorded" | "failed" | "unknown";

/** What the markers on the disk say, and the pulls of this run. */
interface Known {
  /** Number of pulls in progress by image. */
  readonly running: Map<string, number>;
  /** Images whose marker stays until a pull is recorded: an earlier one may have pulled them. */
  readonly uncertain: Set<string>;
  /** Names of markers that could not be read. */
  readonly unread: Set<string>;
}

/** Markers of images being pulled with a pod's credential, now or when an earlier run ended (`{root}/pulling`). */
export class PullIntents {
  readonly #deps: PullIntentsDependencies;
  readonly #directory: string;
  #known: Promise<Known> | undefined;
  /** By image: a marker is written and removed in turn. */
  readonly #turns = new Turns();

  /** @param directory `/var/lib/kubelet/image_manager/pulling` */
  constructor(deps: PullIntentsDependencies, directory: string) {
    this.#deps = deps;
    this.#directory = directory;
  }

  /** @throws FileError when the marker cannot be written */
  async begin(image: string): Promise<void> {
    const { files } = this.#deps;
    const { running } = await this.#load();
    // Before the marker is there: another pull that ends meanwhile must not remove it.
    running.set(image, (running.get(image) ?? 0) + 1);
    try {
      using _turn = await this.#turns.take(image);
      await files.makeDirectory(this.#directory, 0o700);
      await files.writeAtomic(this.#path(image), encodePullIntent(image), 0o600);
    } catch (error) {
      await this.end(image, "failed");
      throw error;
    }
  }

  /** Removes the marker unless it is still needed. A marker that cannot be removed is logged. */
  async end(image: string, how: PullEnd): Promise<void> {
    const { running, uncertain, unread } = await this.#load();
    const others = (running.get(image) ?? 1) - 1;
    if (others > 0) running.set(image, others);
    else running.delete(image);
    const file = imageRecordName(this.#deps.hashing, image);
    if (how === "unknown") uncertain.add(image);
    if (how === "recorded") {
      uncertain.delete(image);
      unread.delete(file);
    }
    using _turn = await this.#turns.take(image);
    if (running.has(image) || uncertain.has(image) || unread.has(file)) return;
    try {
      await this.#deps.files.remove(this.#path(image));
    } catch (error) {
      uncertain.add(image);
      this.#deps.log.warn("cannot remove an image pull intent", { image, error: errorMessage(error) });
    }
  }

  /** Whether a pull by one of the names is in progress, or was interrupted. */
  async has(names: readonly string[]): Promise<boolean | "unknown"> {
    try {
      const known = await this.#load();
      for (const name of names) {
        const file = imageRecordName(this.#deps.hashing, name);
        if (!known.unread.has(file)) continue;
        using _turn = await this.#turns.take(name);
        if (!(await this.#read(file, known))) return "unknown";
      }
      return names.some((name) => known.running.has(name) || known.uncertain.has(name));
    } catch (error) {
      this.#deps.log.warn("cannot read image pull intents; verifying at the registry", {
        path: this.#directory,
        error: errorMessage(error),
      });
      return "unknown";
    }
  }

  /** @throws FileError when the markers cannot be listed; the next call retries */
  #load(): Promise<Known> {
    this.#known ??= this.#readAll().catch((error: unknown) => {
      this.#known = undefined;
      throw error;
    });
    return this.#known;
  }

  async #readAll(): Promise<Known> {
    const known: Known = { running: new Map(), uncertain: new Set(), unread: new Set() };
    for (const { name } of await this.#deps.files.list(this.#directory)) {
      if (isImageRecord(name)) await this.#read(name, known);
    }
    return known;
  }

  /** @returns whether it is known what the marker says; otherwise it is read again when that matters */
  async #read(name: string, { uncertain, unread }: Known): Promise<boolean> {
    const { files, log } = this.#deps;
    const path = `${this.#directory}/${name}`;
    try {
      uncertain.add(decodePullIntent(new TextDecoder().decode(await files.read(path, maxRecordBytes))));
    } catch (error) {
      if (!(error instanceof FileError && error.code === "ENOENT")) {
        unread.add(name);
        log.warn("cannot read an image pull intent", { path, error: errorMessage(error) });
        return false;
      }
    }
    unread.delete(name);
    return true;
  }

  #path(image: string): string {
    return `${this.#directory}/${imageRecordName(this.#deps.hashing, image)}`;
  }
}
