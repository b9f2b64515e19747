import type { Cause } from "../journal/entry.ts";
import { capitalised, type ProbeType } from "./probe-spec.ts";

interface Failure {
  /** What was probed and how it failed. */
  readonly detail: string;
  /** Its journal entry. */
  readonly entry: number;
  /** How late podwright was with the probe. */
  readonly lateMs: number;
}

/** Failure kinds that are recorded as causes. */
const toldFailures = 3;
/** From this delay on a probe counts as late. */
const remarkableMs = 100;

/** The last consecutive failures of one probe, to explain why a container was killed or is not ready. */
export class FailureLog {
  readonly #type: ProbeType;
  readonly #threshold: number;
  #earlier: readonly (Failure & { readonly message: string })[] = [];
  #worstMs = 0;

  constructor(type: ProbeType, threshold: number) {
    this.#type = type;
    this.#threshold = threshold;
  }

  /** Upstream's text, which tools match, then the count: `Liveness probe failed: no response (3/3, GET :80/)` */
  eventMessage(count: number, text: string, what: string): string {
    return `${capitalised(this.#type)} probe failed: ${text} (${this.#row(count)}, ${what})`;
  }

  #row(count: number): string {
    return `${Math.min(count, this.#threshold)}/${this.#threshold}`;
  }

  /** `liveness probe failed 3/3 (GET :8080/healthz: no response in 1 s)` */
  message(count: number, detail: string): string {
    return `${this.#type} probe failed ${this.#row(count)} (${detail})`;
  }

  /**
   * Adds a failure and returns the consecutive failures as a chain of causes, newest first; of identical failures only
   * the last is included.
   */
  add(message: string, failure: Failure): Cause {
    const others = this.#earlier.filter(({ detail }) => detail !== failure.detail);
    this.#earlier = [...others, { ...failure, message }].slice(-toldFailures);
    this.#worstMs = Math.max(this.#worstMs, failure.lateMs);
    const code = `${capitalised(this.#type)}ProbeFailed` as const;
    let chain: Cause | undefined;
    if (this.#worstMs >= remarkableMs) {
      const seconds = (this.#worstMs / 1000).toFixed(1);
      chain = { code: "ProbeLate", message: `podwright was busy: these probes were up to ${seconds} s late` };
    }
    for (const earlier of this.#earlier) {
      chain = { code, message: earlier.message, entry: earlier.entry, ...(chain && { because: chain }) };
    }
    return chain ?? { code, message };
  }

  /** A success resets the count. */
  clear(): void {
    this.#earlier = [];
    this.#worstMs = 0;
  }
}
