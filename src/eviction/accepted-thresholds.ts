import * as z from "zod";
import { errorMessage } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { dueByChange } from "./threshold-change.ts";
import type { Observations } from "./pressure.ts";
import { signals, type Threshold } from "./thresholds.ts";

const Content = z.object({
  thresholds: z.array(
    z.object({
      signal: z.enum(signals),
      value: z.union([z.object({ amount: z.string() }), z.object({ part: z.number() })]),
      graceMs: z.number(),
    }),
  ),
});

const maxBytes = 1 << 16;

export interface AcceptedThresholdsDependencies {
  readonly files: Pick<Files, "stat" | "read" | "writeAtomic" | "makeDirectory">;
  readonly log: Logger;
  /** `<root directory>/podwright` */
  readonly directory: string;
}

/**
 * The thresholds that evictions were last allowed for. Evictions due to a changed configuration are reported, and with
 * `--confirm-evictions` they wait for `podwright evict --confirm`.
 */
export class AcceptedThresholds {
  readonly #deps: AcceptedThresholdsDependencies;
  readonly #now: readonly Threshold[];
  readonly #asks: boolean;
  /** Undefined: same as the current ones. */
  #before: readonly Threshold[] | undefined;

  /** @param asks evictions by changed thresholds wait for a confirmation */
  constructor(deps: AcceptedThresholdsDependencies, now: readonly Threshold[], asks: boolean) {
    this.#deps = deps;
    this.#now = now;
    this.#asks = asks;
  }

  /** Reads the thresholds of earlier runs. Never rejects: without them nothing counts as changed. */
  async load(): Promise<void> {
    const { files, log } = this.#deps;
    try {
      const isKnown = (await files.stat(this.#path)) !== undefined;
      if (!isKnown && this.#now.length === 0) return;
      if (isKnown) {
        const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
        if (text === contentOf(this.#now)) return;
        this.#before = Content.parse(JSON.parse(text)).thresholds.map(({ signal, value, graceMs }) => {
          const parsed = "part" in value ? value : { amount: parseQuantity(value.amount) };
          return { signal, value: parsed, graceMs, minReclaim: undefined };
        });
      }
    } catch (error) {
      log.warn("cannot read the eviction thresholds of the last start", { error: errorMessage(error) });
    }
    // Without thresholds nothing waits.
    if (this.#before === undefined || !this.#asks || this.#now.length === 0) await this.#save();
  }

  /** The due thresholds that are due only because the configuration changed. */
  changed(due: readonly Threshold[], observations: Observations): readonly Threshold[] {
    return dueByChange(due, this.#before, observations);
  }

  /** Whether evictions by changed thresholds wait for a confirmation. */
  get waits(): boolean {
    return this.#asks && this.#before !== undefined;
  }

  /** Allows evictions by the current thresholds. */
  async confirm(): Promise<void> {
    this.#before = undefined;
    await this.#save();
  }

  async #save(): Promise<void> {
    const { files, log, directory } = this.#deps;
    try {
      await files.makeDirectory(directory, 0o700);
      await files.writeAtomic(this.#path, contentOf(this.#now), 0o600);
    } catch (error) {
      log.warn("cannot record the eviction thresholds", { error: errorMessage(error) });
    }
  }

  get #path(): string {
    return `${this.#deps.directory}/eviction.json`;
  }
}

function contentOf(thresholds: readonly Threshold[]): string {
  const written = thresholds.map(({ signal, value, graceMs }) => {
    return { signal, value: "part" in value ? value : { amount: value.amount.toString() }, graceMs };
  });
  return JSON.stringify({ thresholds: written } satisfies z.input<typeof Content>);
}
