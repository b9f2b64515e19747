import * as z from "zod";
import { bootId } from "../base/boot-id.ts";
import { errorMessage } from "../base/errors.ts";
import type { JournalEntry } from "../journal/entry.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

const Content = z.object({ boot: z.string(), sequence: z.int() });
const maxBytes = 4096;

export interface OomRecordDependencies {
  readonly files: Pick<Files, "stat" | "read" | "rename" | "writeAtomic" | "makeDirectory">;
  readonly log: Logger;
  /** `<root directory>/podwright` */
  readonly directory: string;
  /** The journal's observations; undefined: none are kept. */
  readonly journaled?: (() => readonly Pick<JournalEntry, "what" | "data">[]) | undefined;
}

/**
 * The last kernel message whose kill was reported, so that a restart neither repeats nor loses one. The record is
 * written after the report: what it does not know yet is in the journal.
 */
export class OomRecord {
  readonly #deps: OomRecordDependencies;
  #boot = "";

  constructor(deps: OomRecordDependencies) {
    this.#deps = deps;
  }

  /** The machine's current run. To be read after {@link load}. */
  get boot(): string {
    return this.#boot;
  }

  /** The last kernel message handled by earlier runs; undefined: none, and existing messages may be old. Never rejects. */
  async load(): Promise<number | undefined> {
    this.#boot = await bootId(this.#deps.files);
    const [recorded, journaled] = [await this.#recorded(), this.#journaled()];
    if (recorded === undefined || journaled === undefined) return recorded ?? journaled;
    return Math.max(recorded, journaled);
  }

  /** An unreadable record is kept aside: all kills since the boot that the journal does not have are reported then. */
  async #recorded(): Promise<number | undefined> {
    const { files, log } = this.#deps;
    try {
      if ((await files.stat(this.#path)) === undefined) return undefined;
      const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
      const { boot, sequence } = Content.parse(JSON.parse(text));
      // After a reboot nothing has been reported yet.
      return boot === this.#boot ? sequence : -1;
    } catch (error) {
      const aside = `${this.#path}.bad`;
      log.warn("cannot read which OOM kills were reported; reporting all since the boot", {
        ...{ path: this.#path, aside, error: errorMessage(error) },
      });
      await files.rename(this.#path, aside).catch((renaming: unknown) => {
        log.warn("cannot rename the unreadable record of OOM kills", { error: errorMessage(renaming) });
      });
      return -1;
    }
  }

  /** The last report of this boot in the journal. */
  #journaled(): number | undefined {
    const sequences = (this.#deps.journaled?.() ?? []).flatMap(({ what, data }) => {
      const { boot, sequence } = data ?? {};
      const isReport = what === "SystemOOM" || what === "OOMKilling";
      return isReport && boot === this.#boot && typeof sequence === "number" ? [sequence] : [];
    });
    return sequences.length === 0 ? undefined : Math.max(...sequences);
  }

  /** Never rejects: a later run looks into the journal for what could not be recorded. */
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
