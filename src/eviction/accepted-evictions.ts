import { errorMessage } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { decodeTerms, encodeTerms, type EvictionTerms, evictsPods } from "./eviction-terms.ts";
import { type FileSystems, withContainerFs } from "./file-systems.ts";
import { lookAtPressure, noPressure, type Observations, type PressureState } from "./pressure.ts";
import type { Threshold } from "./thresholds.ts";

const maxBytes = 1 << 16;

/** How an eviction differs from what earlier settings would have done. unknown: that cannot be told. */
export type EvictionChange = "changed" | "unknown";

export interface AcceptedEvictionsDependencies {
  readonly files: Pick<Files, "stat" | "read" | "rename" | "writeAtomic" | "makeDirectory">;
  readonly log: Logger;
  /** `<root directory>/podwright` */
  readonly directory: string;
}

/** What the earlier thresholds would do, by the same observations. */
interface Before {
  readonly fileSystems: FileSystems;
  readonly thresholds: readonly Threshold[];
  readonly state: PressureState;
}

/**
 * The settings that evictions were last allowed for. Evictions due to a changed configuration are reported, and with
 * `--confirm-evictions` they wait for `podwright evict --confirm`.
 */
export class AcceptedEvictions {
  readonly #deps: AcceptedEvictionsDependencies;
  readonly #now: EvictionTerms;
  readonly #asks: boolean;
  /** Undefined: same as the current ones. */
  #terms: EvictionTerms | "unknown" | undefined;
  #before: Before | undefined;
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
        if (text === encodeTerms(this.#now)) return;
        this.#terms = decodeTerms(text);
      } else if (!evictsPods(this.#now)) return;
    } catch (error) {
      this.#isUnreadable = true;
      if (this.#asks) this.#terms = "unknown";
      const [path, aside, waitsForConfirmation] = [this.#path, this.#aside, this.#asks];
      const what = { path, aside, waitsForConfirmation, error: errorMessage(error) };
      log.warn("cannot read the eviction settings of the last start", what);
    }
    // Settings that evict nothing wait for nothing.
    if (!this.waits || !evictsPods(this.#now)) await this.#save();
  }

  /** Judges an observation by the earlier thresholds, which may have grace periods. */
  judge(observations: Observations, fileSystems: FileSystems, nowMs: number): void {
    if (this.#terms === undefined || this.#terms === "unknown") return;
    if (this.#before?.fileSystems !== fileSystems) {
      const thresholds = withContainerFs(this.#terms.thresholds, fileSystems);
      this.#before = { fileSystems, thresholds, state: noPressure };
    }
    const { thresholds, state } = this.#before;
    const look = lookAtPressure(state, observations, { thresholds, transitionMs: 0 }, nowMs);
    this.#before = { ...this.#before, state: look.state };
  }

  /** Undefined: the earlier settings evict for the threshold's signal, too, by the last observation. */
  changeOf({ signal }: Threshold): EvictionChange | undefined {
    const terms = this.#terms;
    if (terms === undefined || terms === "unknown") return terms;
    const due = [...(this.#before?.state.due ?? [])].some((threshold) => threshold.signal === signal);
    // The earlier threshold is of another figure, which is not observed any more.
    const isComparable = signal !== "memory.available" || terms.countsMemAvailable === this.#now.countsMemAvailable;
    if (isComparable) return due ? undefined : "changed";
    return terms.thresholds.some((threshold) => threshold.signal === signal) ? "unknown" : "changed";
  }

  /** The same for pods above storage limits of their own. */
  get changeOfLimits(): EvictionChange | undefined {
    const terms = this.#terms;
    if (terms === undefined || terms === "unknown") return terms;
    return terms.enforcesStorageLimits ? undefined : "changed";
  }

  /** Whether evictions by changed settings wait for a confirmation. */
  get waits(): boolean {
    return this.#asks && this.#terms !== undefined;
  }

  /** Allows evictions by the current settings. */
  async confirm(): Promise<void> {
    this.#terms = undefined;
    await this.#save();
  }

  async #save(): Promise<void> {
    const { files, log, directory } = this.#deps;
    try {
      await files.makeDirectory(directory, 0o700);
      if (this.#isUnreadable && (await files.stat(this.#path)) !== undefined) {
        await files.rename(this.#path, this.#aside);
      }
      this.#isUnreadable = false;
      await files.writeAtomic(this.#path, encodeTerms(this.#now), 0o600);
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
