import * as z from "zod";
import { bootId } from "../base/boot-id.ts";
import { errorMessage } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

const Content = z.object({ boot: z.string(), sequence: z.int() });
const maxBytes = 4096;

export interface OomRecordDependencies {
  readonly files: Pick<Files, "stat" | "read" | "writeAtomic" | "makeDirectory">;
  readonly log: Logger;
  /** `<root directory>/podwright` */
  readonly directory: string;
}

/** The last kernel message whose kill was reported, so that a restart neither repeats nor loses one. */
export class OomRecord {
  readonly #deps: OomRecordDependencies;
  #boot = "";

  constructor(deps: OomRecordDependencies) {
    this.#deps = deps;
  }

  /** The last kernel message handled by earlier runs; undefined: none, and existing messages may be old. Never rejects. */
  async load(): Promise<number | undefined> {
    const { files, log } = this.#deps;
    try {
      this.#boot = await bootId(files);
      if ((await files.stat(this.#path)) === undefined) return undefined;
      const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
      const { boot, sequence } = Content.parse(JSON.parse(text));
      // After a reboot nothing has been reported yet.
      return boot === this.#boot ? sequence : -1;
    } catch (error) {
      log.warn("cannot read which OOM kills were reported", { error: errorMessage(error) });
      return undefined;
    }
  }

  /** Never rejects: a later run repeats what could not be recorded. */
  async save(sequence: number): Promise<void> {
    const { files, log, directory } = this.#deps;
    try {
      await files.makeDirectory(directory, 0o700);
      const content = { boot: this.#boot, sequence } satisfies z.input<typeof Content>;
      await files.writeAtomic(this.#path, JSON.stringify(content), 0o600);
    } catch (error) {
      log.warn("cannot record which OOM kills were reported", { error: errorMessage(error) });
    }
  }

  get #path(): string {
    return `${this.#deps.directory}/oom.json`;
  }
}
