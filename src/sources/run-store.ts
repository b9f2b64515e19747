import { join } from "node:path/posix";
import type { ConfigMapManifest, PodManifest, SecretManifest } from "../api/pod.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import { errorMessage } from "../base/errors.ts";
import { fnv64a } from "../base/fnv.ts";
import { removeUnfinished } from "../base/unfinished-files.ts";
import type { Files } from "../ports/files.ts";
import { decodeManifests, maxManifestBytes, type DecodedManifest } from "./decode.ts";
import { objectKey } from "./run-objects.ts";

export type RunObject = PodManifest | ConfigMapManifest | SecretManifest | StorageManifest;

export interface StoredObjects {
  readonly objects: readonly DecodedManifest[];
  readonly problems: readonly StoredProblem[];
}

/** A file that can't be read, or a part of it. */
export interface StoredProblem {
  readonly path: string;
  /** With the path. */
  readonly message: string;
}

/**
 * Objects of `podwright run` on disk: one JSON manifest a file, replaced in one step, readable by root only, as
 * there are Secrets among them.
 */
export class RunStore {
  readonly #files: Files;
  readonly #directory: string;

  /** @param directory absolute, e.g. `<state>/manifests` */
  constructor(files: Files, directory: string) {
    this.#files = files;
    this.#directory = directory;
  }

  async load(): Promise<StoredObjects> {
    await this.#files.makeDirectory(this.#directory, 0o700);
    await removeUnfinished(this.#files, this.#directory);
    const objects: DecodedManifest[] = [];
    const problems: StoredProblem[] = [];
    const names = (await this.#files.list(this.#directory)).map((entry) => entry.name);
    for (const name of names.filter((candidate) => !candidate.startsWith(".")).toSorted()) {
      const path = join(this.#directory, name);
      try {
        const decoded = decodeManifests(await this.#files.read(path, 2 * maxManifestBytes), path);
        objects.push(...decoded.objects);
        problems.push(...decoded.errors.map(({ message }) => ({ path, message })));
        // A power failure may leave an empty file.
        const isEmpty = decoded.objects.length === 0 && decoded.errors.length === 0;
        if (isEmpty) problems.push({ path, message: `${path}: it is empty` });
      } catch (error) {
        problems.push({ path, message: `${path}: ${errorMessage(error)}` });
      }
    }
    return { objects, problems };
  }

  async save(object: RunObject): Promise<void> {
    const path = this.pathOf(object.kind, objectKey(object.metadata));
    await this.#files.writeAtomic(path, `${JSON.stringify(object)}\n`, 0o600);
  }

  async remove(kind: RunObject["kind"], key: string): Promise<void> {
    await this.#files.remove(this.pathOf(kind, key));
  }

  /**
   * Where the object of that kind and key is. The start of its name for people, a hash of it all, since names may be
   * longer than those of files.
   */
  pathOf(kind: RunObject["kind"], key: string): string {
    const readable = key.replace("/", "_").slice(0, 100);
    const hash = fnv64a(`${kind}/${key}`).toString(16).padStart(16, "0");
    return join(this.#directory, `${kind.toLowerCase()}_${readable}_${hash}.json`);
  }
}
