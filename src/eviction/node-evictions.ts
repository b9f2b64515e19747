import { eitherSignal } from "../base/abort.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { evictionGraceSeconds } from "./evicted.ts";
import type { AcceptedEvictions } from "./accepted-evictions.ts";
import { besideLooks } from "./beside-looks.ts";
import type { ChangeReports } from "./change-reports.ts";
import { DecisionUsage } from "./decision-usage.ts";
import type { Evictor } from "./evictor.ts";
import type { MachineState } from "./machine-state.ts";
import { isOfDisk } from "./file-systems.ts";
import { evictionMessage } from "./messages.ts";
import type { NodeReclaim } from "./node-reclaim.ts";
import type { PodUsageReader } from "./pod-usage.ts";
import { metText } from "./plain-amounts.ts";
import { podsToEvict } from "./pods-to-evict.ts";
import { withoutDisks } from "./pressure.ts";
import { type Ranked, rankPods } from "./rank.ts";
import { victimText } from "./rank-words.ts";
import type { RecentUsage } from "./recent-usage.ts";
import { type Reclaimed, type Shortage, SpaceReclaim } from "./space-reclaim.ts";
import { resourceOf, type Signal, type Threshold } from "./thresholds.ts";
import { byUrgency } from "./urgency.ts";

export interface NodeEvictionsDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly usage: PodUsageReader;
  readonly evictor: Evictor;
  readonly accepted: Pick<AcceptedEvictions, "changeOf">;
  readonly reports: ChangeReports;
  readonly recent: Pick<RecentUsage, "text" | "keep" | "last">;
  /** Observes the machine again. */
  readonly look: (signal: AbortSignal) => Promise<MachineState>;
}

/** Pods in eviction order. */
export interface Ranking {
  readonly ranked: readonly Ranked[];
  /** Why their usage could not be measured: they are ranked by what was last known of it. Undefined: it was. */
  readonly problem: string | undefined;
}

interface DecisiveRanking extends Ranking {
  /** Nobody is to be chosen yet. */
  readonly isEarly: boolean;
}

/** A choice among ranked pods. */
interface Choice extends Ranking {
  /** Those that still run. */
  readonly running: ReadonlySet<Ranked>;
  readonly threshold: Threshold;
  readonly because: Cause;
}

/** Evicts pods, one after the other, for resources that the node is short of. */
export class NodeEvictions {
  readonly #deps: NodeEvictionsDependencies;
  readonly #maxPodGraceSeconds: number;
  readonly #usage: DecisionUsage;
  /** What is only shown is measured by itself: it neither begins nor ends the patience of decisions. */
  readonly #previewed: DecisionUsage;
  /** Undefined: nothing can be reclaimed at node level. */
  #reclaim: SpaceReclaim | undefined;

  /** @param maxPodGraceSeconds evictionMaxPodGracePeriod */
  constructor(deps: NodeEvictionsDependencies, maxPodGraceSeconds: number) {
    this.#deps = deps;
    this.#usage = new DecisionUsage(deps);
    this.#previewed = new DecisionUsage(deps);
    this.#maxPodGraceSeconds = maxPodGraceSeconds;
  }

  reclaimWith(reclaim: NodeReclaim): void {
    this.#reclaim = new SpaceReclaim(this.#deps, reclaim);
  }

  /** Pods in eviction order for a signal, by their current usage, or what was last known of it. For a user. */
  async preview(about: Signal, seen: Pick<MachineState, "fileSystems">, signal: AbortSignal): Promise<Ranking> {
    return await this.#rank(this.#previewed, about, seen, signal);
  }

  async #rank(
    usage: DecisionUsage,
    about: Signal,
    { fileSystems }: Pick<MachineState, "fileSystems">,
    signal: AbortSignal,
  ): Promise<DecisiveRanking> {
    const { candidates, ...measured } = await usage.read(about, this.#deps.evictor.candidates(), fileSystems, signal);
    return { ranked: rankPods(candidates, about, fileSystems), ...measured };
  }

  /**
   * Reclaims the resource of the most urgent due threshold: at node level first, then by evicting the first pod of the
   * ranking. If that waits for a confirmation or a measurement, or there is no pod for it, the next threshold gets its
   * turn, and so does one that does not concern a disk while garbage is being removed. At most one pod is evicted.
   * @returns pending: pods went meanwhile, so that it has to be observed first what is short. nobody: a resource is short, and there is no pod that may be evicted for it
   */
  async reclaim(seen: MachineState, signal: AbortSignal): Promise<"done" | "pending" | "nobody"> {
    const held = new Set<Threshold>();
    const withoutHeld = (state: MachineState): MachineState => {
      const due = state.pressure.due.filter((each) => !held.has(each));
      return { ...state, pressure: { ...state.pressure, due } };
    };
    const look = async (within: AbortSignal): Promise<MachineState> => withoutHeld(await this.#deps.look(within));
    const causes = new Map<Threshold, Cause>();
    const tried = new Set<Threshold>();
    const vain = new Set<Signal>();
    let state = seen;
    for (;;) {
      const [threshold] = byUrgency(state.pressure.due);
      if (threshold === undefined) return vain.size > 0 ? "nobody" : "done";
      const cause = causes.get(threshold) ?? this.#announce(threshold, state);
      causes.set(threshold, cause);
      const shortage = { seen: state, threshold, cause, wasVain: vain.has(threshold.signal) };
      const reclaimed = tried.has(threshold) ? undefined : await this.#reclaim?.free(shortage, look, signal);
      if (reclaimed?.isOngoing === true) {
        state = { ...reclaimed.after, pressure: withoutDisks(reclaimed.after.pressure) };
        continue;
      }
      if (reclaimed !== undefined) {
        tried.add(threshold);
        state = reclaimed.after;
        if (!state.pressure.due.includes(threshold)) this.#averted(threshold, reclaimed, cause);
        // Another may be more urgent by now.
        continue;
      }
      const outcome = await this.#evictFirst(shortage, look, signal);
      if (typeof outcome === "object") {
        state = { ...outcome.urgent, pressure: withoutDisks(outcome.urgent.pressure) };
        continue;
      }
      if (outcome === "evicted") return "done";
      if (outcome === "pending") return outcome;
      if (outcome === "nobody") vain.add(threshold.signal);
      held.add(threshold);
      // Ranking may have taken a while.
      state = await look(signal);
    }
  }

  #announce(threshold: Threshold, { observations }: MachineState): Cause {
    const { journal, log } = this.#deps;
    const met = metText(threshold, observations);
    const resource = resourceOf(threshold.signal);
    log.warn("attempting to reclaim", { resource, threshold: met });
    const entry = journal.record({
      kind: "decision",
      what: "EvictionThresholdMet",
      message: `Attempting to reclaim ${resource}`,
      data: { signal: threshold.signal, threshold: met },
    });
    return { code: "EvictionThresholdMet", message: met, entry };
  }

  #averted({ signal }: Threshold, { ofEvicted }: Reclaimed, cause: Cause): void {
    const resource = resourceOf(signal);
    const message = `${resource} was reclaimed without evicting ${ofEvicted ? "another pod" : "pods"}`;
    this.#deps.log.info("reclaimed without evicting pods", { resource });
    this.#deps.journal.record({ kind: "observation", what: "EvictionAverted", message, cause });
  }

  async #evictFirst(
    { threshold, seen, cause: because, wasVain }: Shortage & { readonly wasVain: boolean },
    look: (signal: AbortSignal) => Promise<MachineState>,
    signal: AbortSignal,
  ): Promise<"evicted" | "pending" | "waits" | "nobody" | { readonly urgent: MachineState }> {
    const { log, evictor, accepted, reports } = this.#deps;
    const ranking = await this.#rankBeside(look, threshold, seen, signal);
    if ("urgent" in ranking) return ranking;
    const { ranked, problem, isEarly } = ranking.result;
    // While garbage was removed and usage was read, a pod of an earlier run may have become known, or one may have gone
    // for a limit of its own: what was observed before shows nothing.
    if (evictor.isPending || evictor.hasEvictedSince(seen.beganMs)) return "pending";
    if (isEarly) return "waits";
    // Where layers are is not known: a pod without logs and volumes may free nothing of the disk that is full.
    const gainsSurely = isOfDisk(threshold.signal) && seen.fileSystems === undefined;
    const isUseful = ({ amount }: Ranked): boolean => !gainsSurely || (amount ?? 0) > 0;
    // A pod that ended while usage was being read has released its resources.
    const running = new Set(ranked.filter(({ pod }) => evictor.isCandidate(pod)));
    const victim = ranked.find((each) => !each.isCritical && running.has(each) && isUseful(each));
    if (victim === undefined) {
      log.warn("no pod can be evicted", { signal: threshold.signal, criticalPods: running.size });
      return "nobody";
    }
    // It became known after a more urgent threshold of the same signal had found nobody, and goes for that one.
    if (wasVain) return "pending";
    const graceSeconds = evictionGraceSeconds(victim.pod, threshold, this.#maxPodGraceSeconds);
    // It is being stopped, and an eviction would not stop it sooner.
    if (!evictor.isCandidate(victim.pod, graceSeconds)) return "waits";
    const change = accepted.changeOf(threshold);
    if (change !== undefined) {
      const pods = podsToEvict(
        ranked.filter((each) => running.has(each) && isUseful(each)),
        threshold,
        seen.observations,
      );
      if (reports.tell(pods, { signal: threshold.signal, change, cause: because })) return "waits";
    }
    this.#evict(victim, { ranked, problem, running, threshold, because }, seen);
    return "evicted";
  }

  /** What pods use of a disk can take long to find out: nothing else that gets short waits for it. */
  async #rankBeside(
    look: (signal: AbortSignal) => Promise<MachineState>,
    { signal: about }: Threshold,
    seen: MachineState,
    signal: AbortSignal,
  ): Promise<{ readonly result: DecisiveRanking } | { readonly urgent: MachineState }> {
    if (!isOfDisk(about)) return { result: await this.#rank(this.#usage, about, seen, signal) };
    const given = new AbortController();
    using either = eitherSignal(signal, given.signal);
    const work = this.#rank(this.#usage, about, seen, either.signal);
    const outcome = await besideLooks(this.#deps.clock, { wait: "pods' storage to be measured", work, look }, signal);
    // The next attempt measures anew.
    if ("urgent" in outcome) given.abort(new Error("something else than a disk is short"));
    return outcome;
  }

  #evict(
    victim: Ranked,
    { ranked, problem, running, threshold, because }: Choice,
    { pressure, observations, atMs }: MachineState,
  ): void {
    const { pod, usage } = victim;
    const { signal } = threshold;
    const { clock, evictor, recent } = this.#deps;
    const rank = victimText({ ranked, running }, victim, signal);
    const unmeasured = problem === undefined ? "" : `; usage could not be measured now (${problem})`;
    const due = byUrgency(pressure.due);
    const starvation = { resource: resourceOf(signal), due, observations };
    evictor.evict(pod, {
      signal,
      ...evictionMessage(pod, usage, starvation),
      explanation: `${rank}${unmeasured}; ${recent.text(signal, pod.metadata.uid)}`,
      graceSeconds: evictionGraceSeconds(pod, threshold, this.#maxPodGraceSeconds),
      disruption: true,
      because,
      data: { ages: Object.fromEntries(due.map((each) => [each.signal, clock.monotonic() - atMs])) },
    });
  }
}
