import type { Logger } from "../ports/log.ts";
import type { HealthCheck } from "../server/local-api.ts";

/** The sources that the last observation of the machine was without: each is logged once, and `podwright doctor` has them. */
export class UnmeasuredSources {
  readonly #log: Logger;
  #last: ReadonlyMap<string, string> = new Map();

  constructor(log: Logger) {
    this.#log = log;
  }

  note(unmeasured: ReadonlyMap<string, string>): void {
    for (const [source, error] of unmeasured) {
      if (!this.#last.has(source)) this.#log.warn("eviction manager cannot measure a source", { source, error });
    }
    for (const source of this.#last.keys()) {
      if (!unmeasured.has(source)) this.#log.info("eviction manager measures a source again", { source });
    }
    this.#last = unmeasured;
  }

  health(): HealthCheck[] {
    return [...this.#last].map(([source, why]) => ({
      name: "eviction signals",
      ok: true,
      warning: true,
      detail: `${source} ${why}: its last conditions hold, and no pod is evicted for it`,
      remedy: "see whether that disk or server answers, such as with stat -f; other signals are acted upon as usual",
    }));
  }
}
