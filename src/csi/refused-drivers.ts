import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";

export interface RefusedDriversDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
}

interface Refusal {
  /** The API server's answer. */
  readonly text: string;
  /** It keeps the entry of a driver that has gone. */
  readonly isRemoval: boolean;
}

/** A registrar is refused again within this time, if it is still there. */
const toldForMs = 300_000;

/** The drivers that the API server refuses, for `podwright doctor`, the log and the journal. */
export class RefusedDrivers {
  readonly #deps: RefusedDriversDependencies;
  readonly #refusals = new Map<string, Refusal & { readonly atMs: number }>();

  constructor(deps: RefusedDriversDependencies) {
    this.#deps = deps;
  }

  get recent(): readonly string[] {
    const oldMs = this.#deps.clock.monotonic() - toldForMs;
    for (const [name, { atMs }] of this.#refusals) if (atMs < oldMs) this.#refusals.delete(name);
    return [...this.#refusals].map(([name, refusal]) => sentence(name, refusal));
  }

  /** Call at each refusal of a driver that has lasted some tries. */
  add(name: string, refusal: Refusal): void {
    const { clock, journal, log } = this.#deps;
    const isKnown = this.recent.includes(sentence(name, refusal));
    this.#refusals.set(name, { ...refusal, atMs: clock.monotonic() });
    if (isKnown) return;
    const { text, isRemoval } = refusal;
    log.warn("the API server refuses a CSI driver's entry", { driver: name, error: text, isRemoval });
    journal.record({ kind: "note", what: "CSINodeNotPublished", message: sentence(name, refusal) });
  }

  /** A removal says nothing of why the driver was refused: it follows each failed registration. */
  over(name: string, isRemoval: boolean): void {
    if (!isRemoval || this.#refusals.get(name)?.isRemoval === true) this.#refusals.delete(name);
  }
}

function sentence(name: string, { text, isRemoval }: Refusal): string {
  return `CSI driver ${name} cannot be ${isRemoval ? "removed from" : "listed in"} the CSINode: ${text}`;
}
