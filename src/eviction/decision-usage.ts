import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { type FileSystems, isOfDisk, storageParts } from "./file-systems.ts";
import { type PodUsage, type PodUsageReader, usageOf } from "./pod-usage.ts";
import type { Candidate } from "./rank.ts";
import type { RecentUsage } from "./recent-usage.ts";
import type { Signal } from "./thresholds.ts";

export interface DecisionUsageDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly usage: PodUsageReader;
  readonly recent: Pick<RecentUsage, "keep" | "last">;
}

/** Pods, with what is known of their usage. */
export interface Candidates {
  readonly candidates: readonly Candidate[];
  /** Why their usage could not be measured; undefined: it was. */
  readonly problem: string | undefined;
  /** Nothing is known of any of them, and the next measurement may succeed: nobody is to be chosen yet. */
  readonly isEarly: boolean;
}

/** Nobody is chosen by priority alone before measurements have failed for so long, ms: the next one may succeed. */
const patienceMs = 30_000;

/**
 * The usage of pods at the moment of a decision. If it cannot be measured, as on a disk that does not answer, what was
 * last known of it: the node has to defend itself then, too.
 */
export class DecisionUsage {
  readonly #deps: DecisionUsageDependencies;
  #failingSinceMs: number | undefined;

  constructor(deps: DecisionUsageDependencies) {
    this.#deps = deps;
  }

  /** A pod that was left out of the measurement, because its own disk does not answer, has its last figures, too. */
  async read(
    about: Signal,
    pods: readonly Pod[],
    fileSystems: FileSystems | undefined,
    signal: AbortSignal,
  ): Promise<Candidates> {
    const { clock, log, usage, recent } = this.#deps;
    try {
      const usages = isOfDisk(about)
        ? await this.#storage(about, { pods, fileSystems }, signal)
        : await usage.readRunning(pods, signal);
      recent.keep(about, usages);
      this.#failingSinceMs = undefined;
      const candidates = pods.map((pod): Candidate => {
        const measured = usages.get(pod.metadata.uid);
        // One without processes has no memory, whatever it used before.
        const isLeftOut = measured === undefined && isOfDisk(about);
        return isLeftOut ? this.#last(about, pod) : { pod, usage: measured };
      });
      return { candidates, problem: undefined, isEarly: false };
    } catch (error) {
      signal.throwIfAborted();
      const problem = errorMessage(error);
      log.warn("cannot measure what pods use", { signal: about, error: problem });
      const nowMs = clock.monotonic();
      const candidates = pods.map((pod) => this.#last(about, pod));
      this.#failingSinceMs ??= nowMs;
      const isNothingKnown = candidates.every((candidate) => candidate.usage === undefined);
      return { candidates, problem, isEarly: isNothingKnown && nowMs - this.#failingSinceMs < patienceMs };
    }
  }

  /** What was last known of a pod. */
  #last(about: Signal, pod: Pod): Candidate {
    const { clock, recent } = this.#deps;
    const last = recent.last(about, pod.metadata.uid);
    if (last === undefined) return { pod, usage: undefined };
    return { pod, usage: last.usage, measuredAgoMs: clock.monotonic() - last.atMs };
  }

  /** Measurements have a time limit: those that were cut off get one more, for themselves alone. */
  async #storage(
    about: Signal,
    { pods, fileSystems }: { readonly pods: readonly Pod[]; readonly fileSystems: FileSystems | undefined },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, PodUsage>> {
    const { log, usage } = this.#deps;
    const parts = storageParts(about, fileSystems);
    const usages = await usage.readStorage(pods, "anew", signal);
    const isWhole = ({ metadata }: Pod): boolean => usageOf(usages.get(metadata.uid), about, parts)?.isWhole === true;
    const left = pods.filter((pod) => !isWhole(pod));
    if (left.length === 0) return usages;
    try {
      return new Map([...usages, ...(await usage.readStorage(left, "anew", signal))]);
    } catch (error) {
      signal.throwIfAborted();
      // What the first attempt found is better than what was known before.
      log.warn("cannot measure what some pods use", { signal: about, error: errorMessage(error) });
      return usages;
    }
  }
}
