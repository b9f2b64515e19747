import { errorMessage } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { EarlierStart, type EvictionChange } from "./earlier-start.ts";
import { decodeStarts, encodeStarts, type EvictionTerms, evictsPods, isWithin } from "./eviction-terms.ts";
import type { FileSystems } from "./file-systems.ts";
import type { Observations } from "./pressure.ts";
import type { Threshold } from "./thresholds.ts";

const maxBytes = 1 << 16;
/** Starts that are remembered: the confirmed one, and the latest of those that came after. */
const maxStarts = 8;

export interface AcceptedEvictionsDependencies {
  readonly files: Pick<Files, "stat" | "read" | "rename" | "writeAtomic" | "makeDirectory">;
  readonly log: Logger;
  /** `<root directory>/podwright` */
  readonly directory: string;
}

/**
 * The settings that evictions were last allowed for. Evictions due to a changed configuration are reported, and with
 * `--confirm-evictions` they wait for `podwright evict --confirm`.
 */
export class AcceptedEvictions {
  readonly #deps: AcceptedEvictionsDependencies;
  readonly #now: EvictionTerms;
  readonly #asks: boolean;
  /** Earlier starts that would spare pods which the current settings evict; none: nothing has changed. */
  #earlier: readonly EarlierStart[] | "unknown" = [];
  /** The file is to be kept aside. */
  #isUnreadable = false;

  /** @param asks evictions by changed settings wait for a confirmation */
  constructor(deps: AcceptedEvictionsDependencies, now: EvictionTerms, asks: boolean) {
    this.#deps = deps;
    this.#now = now;
    this.#asks = asks;
  }

  /**
   * Reads the settings of earlier runs. Never rejects. Without a file nothing counts as changed; an unreadable one,
   * which is kept as `eviction.json.bad` once it is replaced, may have said anything: then all evictions wait where a
   * confirmation is required.
   */
  async load(): Promise<void> {
    const { files, log } = this.#deps;
    try {
      if ((await files.stat(this.#path)) !== undefined) {
        const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
        return await this.#compare(decodeStarts(text), text);
      }
    } catch (error) {
      this.#isUnreadable = true;
      if (this.#asks) this.#earlier = "unknown";
      const [path, aside, waitsForConfirmation] = [this.#path, this.#aside, this.#asks];
      const what = { path, aside, waitsForConfirmation, error: errorMessage(error) };
      log.warn("cannot read the eviction settings of the last start", what);
    }
    // Settings that evict nothing wait for nothing.
    if (!this.waits || !evictsPods(this.#now)) await this.#save([this.#now]);
  }

  /** @param text what is recorded of them */
  async #compare(starts: readonly EvictionTerms[], text: string): Promise<void> {
    const now = this.#now;
    const stricter = starts.filter((terms) => !isWithin(now, terms));
    this.#earlier = stricter.map((terms) => new EarlierStart(terms, now));
    const record = this.#asks ? recordOf(stricter, now) : ([now] as const);
    if (encodeStarts(record) !== text) await this.#save(record);
  }

  /** Judges an observation by the earlier thresholds, which may have grace periods. */
  judge(observations: Observations, fileSystems: FileSystems | undefined, nowMs: number): void {
    if (this.#earlier === "unknown") return;
    for (const start of this.#earlier) start.judge(observations, fileSystems, nowMs);
  }

  /** Undefined: the earlier settings evict for the threshold's signal, too, by the last observation. */
  changeOf({ signal }: Threshold): EvictionChange | undefined {
    return this.#changeBy((start) => start.changeOf(signal));
  }

  /** The same for pods above storage limits of their own. */
  get changeOfLimits(): EvictionChange | undefined {
    return this.#changeBy((start) => start.changeOfLimits);
  }

  #changeBy(changeOf: (start: EarlierStart) => EvictionChange | undefined): EvictionChange | undefined {
    if (this.#earlier === "unknown") return "unknown";
    const changes = new Set(this.#earlier.map(changeOf));
    if (changes.has("changed")) return "changed";
    return changes.has("unknown") ? "unknown" : undefined;
  }

  /** Whether evictions by changed settings wait for a confirmation. */
  get waits(): boolean {
    return this.#asks && this.#earlier.length > 0;
  }

  /** Allows evictions by the current settings. */
  async confirm(): Promise<void> {
    this.#earlier = [];
    await this.#save([this.#now]);
  }

  async #save(record: StartsRecord): Promise<void> {
    const { files, log, directory } = this.#deps;
    try {
      await files.makeDirectory(directory, 0o700);
      if (this.#isUnreadable && (await files.stat(this.#path)) !== undefined) {
        await files.rename(this.#path, this.#aside);
      }
      this.#isUnreadable = false;
      await files.writeAtomic(this.#path, encodeStarts(record), 0o600);
    } catch (error) {
      log.warn("cannot record the eviction settings", { error: errorMessage(error) });
    }
  }

  get #path(): string {
    return `${this.#deps.directory}/eviction.json`;
  }

  get #aside(): string {
    return `${this.#path}.bad`;
  }
}

type StartsRecord = Parameters<typeof encodeStarts>[0];

/**
 * What the next start has to compare itself with: the start that was confirmed last, and those since, as far as they
 * spare more pods. So it counts as a change, too, what a milder start had taken back.
 */
function recordOf(stricter: readonly EvictionTerms[], now: EvictionTerms): StartsRecord {
  const isMilder = !stricter.some((terms) => isWithin(terms, now));
  const [first = now, ...later] = [...stricter, ...(isMilder ? [now] : [])];
  return [first, ...later.slice(-(maxStarts - 1))];
}
