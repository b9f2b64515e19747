import { orAborted } from "../base/abort.ts";
import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import {
  addressesWithNodeIp,
  type CloudInstance,
  cloudLabels,
  type CloudProvider,
  type NodeAddress,
} from "./cloud-provider.ts";

/** A cloud's additions to a Node. */
export interface CloudFacts {
  readonly providerId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly addresses: readonly NodeAddress[];
}

export interface CloudResourceSyncDependencies {
  readonly provider: CloudProvider;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  readonly log: Logger;
  /** The metadata changed. It must not throw. */
  readonly onChange: () => void;
}

export interface CloudResourceSyncConfig {
  /** Poll interval while it answers. */
  readonly periodMs: number;
  /** Addresses of `--node-ip`. */
  readonly nodeIps: readonly string[];
}

const firstRetryMs = 1000;
const longestRetryMs = 60_000;
const jitter = 0.5;
const lookLimitMs = 20_000;
/** How long the registration of the node waits for the cloud's first answer. */
const firstAnswerMs = 30_000;

/**
 * Maintains the cloud's metadata of the machine (upstream's cloudResourceSyncManager, until 1.30). While the cloud does
 * not answer, the last known metadata stays in use.
 */
export class CloudResourceSync {
  readonly #deps: CloudResourceSyncDependencies;
  readonly #config: CloudResourceSyncConfig;
  readonly #first = Promise.withResolvers<void>();
  #facts: CloudFacts | undefined;
  #problem: string | undefined;
  #answeredAtMs: number | undefined;

  constructor(deps: CloudResourceSyncDependencies, config: CloudResourceSyncConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** Undefined: the cloud has never answered. */
  get facts(): CloudFacts | undefined {
    return this.#facts;
  }

  check(): { readonly name: string; readonly ok: boolean; readonly detail: string } {
    const { provider, clock } = this.#deps;
    const at = this.#answeredAtMs;
    const answered =
      at === undefined ? "never answered" : `answered ${((clock.monotonic() - at) / 1000).toFixed(1)} s ago`;
    const problem = this.#problem === undefined ? "" : `: ${this.#problem}`;
    return {
      name: "cloud",
      ok: this.#problem === undefined,
      detail: `metadata of ${provider.name} ${answered}${problem}`,
    };
  }

  /** Resolves once the cloud has answered, the wait is over, or the signal aborts. */
  async known(signal: AbortSignal): Promise<void> {
    await orAborted(this.#first.promise, signal);
  }

  /** Polls until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    using _limit = clock.timer("the first response of the cloud's metadata service", firstAnswerMs, () =>
      this.#first.resolve(),
    );
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      const answered = await this.#look(signal);
      if (answered) this.#first.resolve();
      const delayMs = answered ? this.#config.periodMs : retryMs * (1 + jitter * random.uniform());
      retryMs = answered ? firstRetryMs : Math.min(retryMs * 2, longestRetryMs);
      await clock.sleep("the next poll of the cloud's metadata", delayMs, signal).catch(() => {});
    }
  }

  async #look(signal: AbortSignal): Promise<boolean> {
    const { provider, clock } = this.#deps;
    try {
      const what = `metadata of ${provider.name}`;
      const instance = await withDeadline(clock, what, lookLimitMs, signal, (deadline) => provider.instance(deadline));
      this.#take(instance);
      return true;
    } catch (error) {
      if (!signal.aborted) this.#failed(errorMessage(error));
      return false;
    }
  }

  #take(instance: CloudInstance): void {
    const { clock, journal, log, onChange, provider } = this.#deps;
    const facts = {
      providerId: instance.providerId,
      labels: cloudLabels(instance),
      addresses: addressesWithNodeIp(instance.addresses, this.#config.nodeIps),
    };
    this.#answeredAtMs = clock.monotonic();
    if (this.#problem !== undefined) {
      const message = `metadata service of ${provider.name} answers again`;
      journal.record({ kind: "note", what: "CloudMetadataAnswers", message });
      log.info("cloud metadata service answers again", { provider: provider.name });
    }
    this.#problem = undefined;
    if (JSON.stringify(facts) === JSON.stringify(this.#facts)) return;
    this.#facts = facts;
    const { providerId, addresses } = facts;
    log.info("cloud metadata changed", {
      providerId,
      addresses: addresses.map(({ type, address }) => `${type} ${address}`),
    });
    onChange();
  }

  /** Logged once while it fails in the same way. */
  #failed(problem: string): void {
    const { journal, log, provider } = this.#deps;
    if (problem === this.#problem) return;
    const goesOn = this.#facts === undefined ? "using the machine's own addresses" : "using the last known metadata";
    const message = `cannot get metadata of ${provider.name} (${goesOn}): ${problem}`;
    this.#problem = problem;
    journal.record({ kind: "note", what: "CloudMetadataFailed", message });
    log.warn("cannot get cloud metadata", { provider: provider.name, error: problem, fallback: goesOn });
  }
}
