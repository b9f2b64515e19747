import { errorMessage } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

const maxBytes = 1024 * 1024;

/**
 * The recorded pods of the manifests directory, as `namespace/name`. A missing file is an empty record.
 * @throws FileError; Error for a damaged record
 */
export async function readBootPods(files: Pick<Files, "read">, path: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await files.read(path, maxBytes));
  } catch (error) {
    if (error instanceof FileError && error.code === "ENOENT") return [];
    throw error;
  }
  const value: unknown = JSON.parse(text);
  if (Array.isArray(value) && value.every((name) => typeof name === "string")) return value;
  throw new Error("not a list of names");
}

/** The record of the pods that came from the manifests directory: a JSON array of `namespace/name`. */
export class BootMemory {
  readonly #files: Files;
  readonly #log: Logger;
  readonly #path: string;

  constructor(files: Files, log: Logger, path: string) {
    this.#files = files;
    this.#log = log;
    this.#path = path;
  }

  /**
   * An unreadable record is set aside as `<path>.bad` and counts as empty: a pod whose manifest was removed while no engine ran then
   * keeps running, and the log says so.
   */
  async read(): Promise<readonly string[]> {
    try {
      return await readBootPods(this.#files, this.#path);
    } catch (error) {
      const aside = `${this.#path}.bad`;
      this.#log.warn("cannot read which pods came from manifests; renaming the record", {
        path: this.#path,
        aside,
        error: errorMessage(error),
        remedy: "stop pods whose manifests are gone with 'podwright stop'",
      });
      await this.#files.rename(this.#path, aside);
      return [];
    }
  }

  /** The ID of the boot in which the manifests were applied last; undefined: unknown. Never rejects. */
  async lastBoot(): Promise<string | undefined> {
    try {
      return new TextDecoder().decode(await this.#files.read(this.#bootPath, maxBytes)).trim();
    } catch {
      return undefined;
    }
  }

  async writeBoot(id: string): Promise<void> {
    await this.#files.writeAtomic(this.#bootPath, `${id}\n`, 0o600);
  }

  get #bootPath(): string {
    return `${this.#path}.boot`;
  }

  async write(names: readonly string[]): Promise<void> {
    await this.#files.writeAtomic(this.#path, `${JSON.stringify(names)}\n`, 0o600);
  }
}
