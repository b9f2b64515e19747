import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import { statedFeatures } from "../runtime-service/features.ts";
import type { RuntimeFacts } from "./node-status.ts";

/** As upstream (updateRuntimeUp). */
const periodMs = 5000;
/** Status queries for each version query, since version changes are not reported. */
const asksPerVersion = 12;
/** While the network is not ready: pods wait for it. */
const withoutNetworkMs = 1000;
/** How long a ready status stays valid without another answer. */
const believedMs = 30_000;

/** The runtime's last status. */
interface Report {
  /** Why it is not ready, in upstream's words. */
  readonly problems: readonly string[];
  /** The network's reason, if any. */
  readonly network: string | undefined;
}

/**
 * Queries the runtime's status every 5 s: the runtime's part of the node's Ready condition (upstream's runtimeState).
 */
export class RuntimeState {
  readonly #clock: Clock;
  readonly #runtime: Pick<Cri["runtime"], "status" | "version">;
  readonly #log: Logger;
  readonly #onChange: () => void;
  readonly #onNetwork: () => void;
  #report: Report | undefined;
  #facts: RuntimeFacts;
  #asks = 0;
  /** It may have returned as another version. */
  #wasAway = false;
  readonly #answered = Promise.withResolvers<void>();
  #answeredAtMs: number | undefined;

  /**
   * @param facts as detected at the start
   * @param onChange called when the runtime's reported state changed
   * @param onNetwork called when the network became ready
   */
  constructor(
    deps: { readonly clock: Clock; readonly runtime: Pick<Cri["runtime"], "status" | "version">; readonly log: Logger },
    facts: RuntimeFacts,
    onChange: () => void,
    onNetwork: () => void,
  ) {
    this.#clock = deps.clock;
    this.#runtime = deps.runtime;
    this.#log = deps.log;
    this.#facts = facts;
    this.#onChange = onChange;
    this.#onNetwork = onNetwork;
  }

  /** Resolves once the runtime has answered: before, nothing is known of this node. Rejects when the signal aborts. */
  async known(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    using _abort = onAbort(signal, () => reject(signal.reason));
    await Promise.race([this.#answered.promise, promise]);
  }

  /**
   * Why no pod can run, in upstream's words and order; empty: all is well.
   * @param checks further problems, such as PLEG's
   */
  problems(checks: readonly string[] = []): string[] {
    if (this.#report === undefined || this.#answeredAtMs === undefined) {
      return ["container runtime status check may not have completed yet", ...checks];
    }
    const down = this.#clock.monotonic() - this.#answeredAtMs > believedMs;
    return [...(down ? ["container runtime is down"] : []), ...checks, ...this.#report.problems];
  }

  /** The runtime's version and features: it may have been replaced since the start. */
  get facts(): RuntimeFacts {
    return this.#facts;
  }

  /** Why the network is not ready, in upstream's words; undefined when ready, or unknown. */
  get networkProblem(): string | undefined {
    return this.#report?.network;
  }

  /** Polls until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const before = [...this.problems(), JSON.stringify(this.#facts)].join();
      const { networkProblem } = this;
      await this.#ask(signal);
      if (signal.aborted) return;
      if (before !== [...this.problems(), JSON.stringify(this.#facts)].join()) this.#onChange();
      if (networkProblem !== undefined && this.networkProblem === undefined) this.#onNetwork();
      const pauseMs = this.networkProblem === undefined ? periodMs : withoutNetworkMs;
      await this.#clock.sleep("the next check of the container runtime", pauseMs, signal).catch(() => {});
    }
  }

  async #askVersion(signal: AbortSignal): Promise<void> {
    // The caller has just queried it.
    const isDue = this.#asks > 0 ? this.#asks % asksPerVersion === 0 : this.#wasAway;
    this.#asks++;
    if (!isDue) return;
    const { runtimeName: name, runtimeVersion: version } = await this.#runtime.version(
      {},
      { signal, timeoutMs: believedMs },
    );
    this.#facts = { ...this.#facts, name, version };
    this.#wasAway = false;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    try {
      const answer = await this.#runtime.status({}, { signal, timeoutMs: believedMs });
      const { status } = answer;
      const unmet = (type: string, text: string): string[] => {
        const condition = status?.conditions.find((each) => each.type === type);
        if (condition?.status) return [];
        const { reason = "", message = "" } = condition ?? {};
        return [`${text}: ${type}=false reason:${reason} message:${message}`];
      };
      const runtime = unmet("RuntimeReady", "container runtime not ready");
      const network = unmet("NetworkReady", "container runtime network not ready");
      this.#report = { problems: [...runtime, ...network], network: network[0] };
      // A runtime that reports not ready for a while counts as unresponsive.
      if (runtime.length === 0 || this.#answeredAtMs === undefined) this.#answeredAtMs = this.#clock.monotonic();
      this.#facts = { ...this.#facts, ...statedFeatures(answer) };
      this.#answered.resolve();
      await this.#askVersion(signal);
    } catch (error) {
      if (signal.aborted) return;
      [this.#asks, this.#wasAway] = [0, true];
      this.#log.warn("cannot get container runtime status", { error: errorMessage(error) });
    }
  }
}
