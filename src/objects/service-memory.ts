import * as z from "zod";
import { orAborted } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Collection } from "./collection.ts";
import { Service } from "./service-variables.ts";

interface ServiceMemoryDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "read" | "writeAtomic">;
  readonly log: Logger;
}

const periodMs = 60_000;
const maxBytes = 64 << 20;
const Services = z.array(Service);

/**
 * The services as an earlier run knew them: a container that is restarted while the API server is away, after a restart
 * of podwright, keeps its service variables.
 */
export class ServiceMemory {
  readonly #deps: ServiceMemoryDependencies;
  readonly #path: string;
  readonly #services: Collection<Service>;
  readonly #known = Promise.withResolvers<void>();
  #remembered: readonly Service[] | undefined;
  #savedVersion = 0;

  constructor(deps: ServiceMemoryDependencies, path: string, services: Collection<Service>) {
    this.#deps = deps;
    this.#path = path;
    this.#services = services;
    void services.known.then(() => this.#known.resolve());
  }

  /** Resolves once {@link all} has an answer. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  /** As the API server has them, or as an earlier run last knew them; undefined: unknown. */
  all(): Iterable<Service> | undefined {
    return this.#services.isKnown ? this.#services.all() : this.#remembered;
  }

  /** Reads the services of an earlier run, then records changes until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, files, log } = this.#deps;
    try {
      const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
      this.#remembered = Services.parse(JSON.parse(text));
      this.#known.resolve();
    } catch (error) {
      log.debug("cannot read the services that an earlier run recorded", { error: errorMessage(error) });
    }
    await orAborted(this.#services.known, signal);
    while (!signal.aborted) {
      await this.#save();
      await clock.sleep("the next recording of services", periodMs, signal).catch(() => {});
    }
  }

  async #save(): Promise<void> {
    const { files, log } = this.#deps;
    const { version } = this.#services;
    if (version === this.#savedVersion) return;
    try {
      await files.writeAtomic(this.#path, JSON.stringify([...this.#services.all()]), 0o600);
      this.#savedVersion = version;
    } catch (error) {
      log.warn("cannot record services", { path: this.#path, error: errorMessage(error) });
    }
  }
}
