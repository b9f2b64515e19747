import { errorMessage } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

const maxBytes = 4096;

interface KeptSettings {
  readonly evict: boolean;
}

/**
 * Whether the engines of a state directory evict pods for the node. `run --evict` asks one engine for it, and the next
 * one, which takes its pods over after a crash or a reboot, protects the machine likewise. It is forgotten with the last
 * pod.
 */
export class KeptEvictions {
  readonly #files: Pick<Files, "read" | "writeAtomic" | "remove">;
  readonly #log: Logger;
  readonly #path: string;

  constructor(files: Pick<Files, "read" | "writeAtomic" | "remove">, log: Logger, path: string) {
    this.#files = files;
    this.#log = log;
    this.#path = path;
  }

  /**
   * What holds for this engine. Never rejects: on a full disk the engine is needed most.
   * @param asked of this start; undefined: as before
   */
  async take(asked: boolean | undefined): Promise<boolean> {
    const kept = await this.#read();
    const evict = asked ?? kept;
    if (asked === undefined && kept) this.#log.info("evictions are on, as for the engine before", { path: this.#path });
    if (evict !== kept) await this.#keep({ evict });
    return evict;
  }

  async forget(): Promise<void> {
    await this.#files.remove(this.#path).catch((error: unknown) => {
      this.#log.warn("cannot forget that evictions were on", { path: this.#path, error: errorMessage(error) });
    });
  }

  async #keep(settings: KeptSettings): Promise<void> {
    await this.#files.writeAtomic(this.#path, `${JSON.stringify(settings)}\n`, 0o600).catch((error: unknown) => {
      this.#log.warn("cannot record whether evictions are on", { path: this.#path, error: errorMessage(error) });
    });
  }

  async #read(): Promise<boolean> {
    try {
      const text = new TextDecoder().decode(await this.#files.read(this.#path, maxBytes));
      return (JSON.parse(text) as Partial<KeptSettings>).evict === true;
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return false;
      this.#log.warn("cannot read whether evictions were on", {
        path: this.#path,
        error: errorMessage(error),
        remedy: "start the engine with --evict or --no-evict",
      });
      return false;
    }
  }
}
