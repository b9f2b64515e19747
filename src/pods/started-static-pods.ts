import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { RecordFiles } from "../base/patient-files.ts";
import type { Logger } from "../ports/log.ts";

/**
 * Stores which UIDs of static pods podwright itself assigned: one empty file each. A running pod with such a UID whose
 * manifest now yields another one has changed; a pod with any other UID belongs to another kubelet.
 */
export class StartedStaticPods {
  readonly #files: RecordFiles;
  readonly #log: Logger;
  readonly #directory: string;
  #known: Set<PodUid> | undefined;

  constructor(files: RecordFiles, log: Logger, directory: string) {
    this.#files = files;
    this.#log = log;
    this.#directory = directory;
  }

  async has(uid: PodUid): Promise<boolean> {
    return (await this.#load()).has(uid);
  }

  /** Never rejects: a missing record at most delays noticing a change. */
  async add(uid: PodUid): Promise<void> {
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

  /** Forgets all but those that still exist. */
  async keepOnly(isThere: (uid: PodUid) => boolean): Promise<void> {
    const known = await this.#load();
    for (const uid of [...known].filter((candidate) => !isThere(candidate))) {
      known.delete(uid);
      await this.#files.remove(`${this.#directory}/${uid}`).catch(() => {});
    }
  }

  async #load(): Promise<Set<PodUid>> {
    if (this.#known !== undefined) return this.#known;
    const entries = await this.#files.list(this.#directory).catch(() => []);
    this.#known ??= new Set(entries.map(({ name }) => podUid(name)));
    return this.#known;
  }
}
