import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { type FileSystems, isOfDisk, type StoragePart, storageParts } from "./file-systems.ts";
import {
  type MeasuredKind,
  measuredMs,
  type PodUsage,
  type PodUsageReader,
  usageOf,
  withoutVolumes,
} from "./pod-usage.ts";
import type { Candidate } from "./rank.ts";
import type { LastUsage, RecentUsage } from "./recent-usage.ts";
import type { Signal } from "./thresholds.ts";
import { keptMs } from "./usage-history.ts";

export interface DecisionUsageDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly usage: PodUsageReader;
  readonly recent: Pick<RecentUsage, "keep" | "last">;
}

interface Reading {
  /** Of pods' storage that count. */
  readonly parts: readonly StoragePart[] | undefined;
  /** When the decision asked for it, monotonic ms. */
  readonly beganMs: number;
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
  /** Since when nothing of a kind could be measured, monotonic ms: a disk may hang while memory can be read. */
  readonly #failingSinceMs = new Map<MeasuredKind, number>();

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
    const beganMs = clock.monotonic();
    const parts = storageParts(about, fileSystems);
    const kind = isOfDisk(about) ? "storage" : "running";
    const last = (pod: Pod): Candidate => {
      const kept = recent.last(about, pod.metadata.uid);
      return kept === undefined ? { pod, usage: undefined } : this.#candidate(pod, kept, { parts, beganMs });
    };
    try {
      const usages =
        kind === "storage"
          ? await this.#storage(about, { pods, parts, beganMs }, signal)
          : await usage.readRunning(pods, signal);
      recent.keep(about, usages);
      this.#failingSinceMs.delete(kind);
      const candidates = pods.map((pod): Candidate => {
        const measured = usages.get(pod.metadata.uid);
        // One without processes has no memory, whatever it used before.
        if (measured === undefined) return kind === "storage" ? last(pod) : { pod, usage: undefined };
        return this.#candidate(pod, { usage: measured, atMs: clock.monotonic() }, { parts, beganMs });
      });
      return { candidates, problem: undefined, isEarly: false };
    } catch (error) {
      signal.throwIfAborted();
      const problem = errorMessage(error);
      log.warn("cannot measure what pods use", { signal: about, error: problem });
      const nowMs = clock.monotonic();
      const candidates = pods.map(last);
      const sinceMs = this.#failingSinceMs.get(kind) ?? nowMs;
      this.#failingSinceMs.set(kind, sinceMs);
      const isNothingKnown = candidates.every((candidate) => candidate.usage === undefined);
      return { candidates, problem, isEarly: isNothingKnown && nowMs - sinceMs < patienceMs };
    }
  }

  /** With the age of a usage that was measured before the decision; what volumes had long ago is not known any more. */
  #candidate(pod: Pod, { usage, atMs }: LastUsage, { parts, beganMs }: Reading): Candidate {
    const nowMs = this.#deps.clock.monotonic();
    const isOld = nowMs - measuredMs(usage, atMs, parts) > keptMs;
    const known = isOld ? withoutVolumes(usage) : usage;
    const ofMs = measuredMs(known, atMs, parts);
    return ofMs >= beganMs ? { pod, usage: known } : { pod, usage: known, measuredAgoMs: nowMs - ofMs };
  }

  /** Measurements have a time limit: those that were cut off get one more, for themselves alone. */
  async #storage(
    about: Signal,
    { pods, parts, beganMs }: Reading & { readonly pods: readonly Pod[] },
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, PodUsage>> {
    const { clock, log, usage } = this.#deps;
    const usages = await usage.readStorage(pods, "anew", signal);
    const isWhole = ({ metadata }: Pod): boolean => {
      const own = usages.get(metadata.uid);
      // Instead of a walk that was cut off there are the figures of the one before.
      if (own !== undefined && measuredMs(own, clock.monotonic(), parts) < beganMs) return false;
      return usageOf(own, about, parts)?.isWhole === true;
    };
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
