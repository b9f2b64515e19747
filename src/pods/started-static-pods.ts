import { errorMessage } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

/**
 * Remembers on disk which UIDs of static pods podwright itself gave: one empty file each. A running pod with such a UID
 * whose manifest now gives another one has changed; a pod with any other UID comes from another kubelet.
 */
export class StartedStaticPods {
  readonly #files: Files;
  readonly #log: Logger;
  readonly #directory: string;
  #known: Set<string> | undefined;

  constructor(files: Files, log: Logger, directory: string) {
    this.#files = files;
    this.#log = log;
    this.#directory = directory;
  }

  async has(uid: string): Promise<boolean> {
    return (await this.#load()).has(uid);
  }

  /** Never rejects: not remembering costs at most a change that is noticed later. */
  async add(uid: string): Promise<void> {
    const known = await this.#load();
    if (known.has(uid)) return;
    known.add(uid);
    try {
      await this.#files.makeDirectory(this.#directory, 0o700);
      await this.#files.write(`${this.#directory}/${uid}`, "", 0o600);
    } catch (error) {
      this.#log.warn("cannot record a static pod", { uid, error: errorMessage(error) });
    }
  }

  /** Forgets all but those that are still there. */
  async keepOnly(isThere: (uid: string) => boolean): Promise<void> {
    const known = await this.#load();
    for (const uid of [...known].filter((candidate) => !isThere(candidate))) {
      known.delete(uid);
      await this.#files.remove(`${this.#directory}/${uid}`).catch(() => {});
    }
  }

  async #load(): Promise<Set<string>> {
    if (this.#known !== undefined) return this.#known;
    const entries = await this.#files.list(this.#directory).catch(() => []);
    this.#known ??= new Set(entries.map(({ name }) => name));
    return this.#known;
  }
}
