import { fullName } from "../api/full-name.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { evictionGraceSeconds } from "./evicted.ts";
import type { AcceptedThresholds } from "./accepted-thresholds.ts";
import type { Evictor } from "./evictor.ts";
import { type FileSystems, storageParts } from "./file-systems.ts";
import type { MachineState } from "./machine-state.ts";
import { evictionMessage } from "./messages.ts";
import type { NodeReclaim } from "./node-reclaim.ts";
import { type PodUsageReader, usageOf } from "./pod-usage.ts";
import { metText } from "./pressure.ts";
import { type Ranked, rankPods } from "./rank.ts";
import { victimText } from "./rank-words.ts";
import { SpaceReclaim } from "./space-reclaim.ts";
import { resourceOf, type Signal, type Threshold } from "./thresholds.ts";
import { byUrgency } from "./urgency.ts";
import { UsageHistory } from "./usage-history.ts";

export interface NodeEvictionsDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly usage: PodUsageReader;
  readonly evictor: Evictor;
  readonly accepted: AcceptedThresholds;
  /** Observes the machine again. */
  readonly look: (signal: AbortSignal) => Promise<MachineState>;
}

/** Evicts pods, one after the other, for resources that the node is short of. */
export class NodeEvictions {
  readonly #deps: NodeEvictionsDependencies;
  readonly #maxPodGraceSeconds: number;
  /** Undefined: nothing can be reclaimed at node level. */
  #reclaim: SpaceReclaim | undefined;
  /** By signal. */
  readonly #histories = new Map<Signal, UsageHistory>();
  #told: string | undefined;

  /** @param maxPodGraceSeconds evictionMaxPodGracePeriod */
  constructor(deps: NodeEvictionsDependencies, maxPodGraceSeconds: number) {
    this.#deps = deps;
    this.#maxPodGraceSeconds = maxPodGraceSeconds;
  }

  /** The pod that a changed configuration would evict; undefined: none so far. */
  get told(): string | undefined {
    return this.#told;
  }

  /** Records the pods' usage of a signal's resource, for the explanation of an eviction. */
  async watch(about: Signal, fileSystems: FileSystems, signal: AbortSignal): Promise<void> {
    const { clock, usage, evictor } = this.#deps;
    const pods = evictor.candidates();
    const parts = storageParts(about, fileSystems);
    const usages =
      parts.length > 0 ? await usage.readStorage(pods, "kept", signal) : await usage.readRunning(pods, signal);
    const amounts = new Map([...usages].map(([uid, used]) => [uid, usageOf(used, about, parts)] as const));
    const history = this.#histories.get(about) ?? new UsageHistory(resourceOf(about));
    this.#histories.set(about, history);
    history.note(amounts, clock.monotonic());
  }

  reclaimWith(reclaim: NodeReclaim): void {
    this.#reclaim = new SpaceReclaim(this.#deps, reclaim);
  }

  /** The changed thresholds have been confirmed. */
  confirmed(): void {
    this.#told = undefined;
  }

  /** Pods in eviction order for a signal, by their current usage. */
  async rank(
    about: Signal,
    { fileSystems }: Pick<MachineState, "fileSystems">,
    signal: AbortSignal,
  ): Promise<Ranked[]> {
    const { usage, evictor } = this.#deps;
    const pods = evictor.candidates();
    const isOfDisk = storageParts(about, fileSystems).length > 0;
    const usages = isOfDisk ? await usage.readStorage(pods, "anew", signal) : await usage.readRunning(pods, signal);
    return rankPods(
      pods.map((pod) => ({ pod, usage: usages.get(pod.metadata.uid) })),
      about,
      fileSystems,
    );
  }

  /**
   * Reclaims the resource of the most urgent due threshold: at node level first, then by evicting the first pod of the
   * ranking. At most one pod is evicted.
   */
  async reclaim(seen: MachineState, signal: AbortSignal): Promise<void> {
    const { journal, log } = this.#deps;
    const [threshold] = byUrgency(seen.pressure.due);
    if (threshold === undefined) return;
    const met = metText(threshold, seen.observations);
    const resource = resourceOf(threshold.signal);
    log.warn("attempting to reclaim", { resource, threshold: met });
    const entry = journal.record({
      kind: "decision",
      what: "EvictionThresholdMet",
      message: `Attempting to reclaim ${resource}`,
      data: { signal: threshold.signal, threshold: met },
    });
    const cause: Cause = { code: "EvictionThresholdMet", message: met, entry };
    const reclaimed = await this.#reclaim?.free(seen, threshold, cause, signal);
    if (reclaimed === undefined) return this.#evictFirst(seen, cause, signal);
    const { after, ofEvicted } = reclaimed;
    if (after.pressure.due.length > 0) return this.#evictFirst(after, cause, signal);
    const message = `${resource} was reclaimed without evicting ${ofEvicted ? "another pod" : "pods"}`;
    log.info("reclaimed without evicting pods", { resource });
    journal.record({ kind: "observation", what: "EvictionAverted", message, cause });
  }

  async #evictFirst(seen: MachineState, because: Cause, signal: AbortSignal): Promise<void> {
    const { log, evictor, accepted } = this.#deps;
    const due = byUrgency(seen.pressure.due);
    const changed = accepted.changed(due, seen.observations);
    const threshold = due.find((each) => !accepted.waits || !changed.includes(each)) ?? due[0];
    if (threshold === undefined) return;
    const ranked = await this.rank(threshold.signal, seen, signal);
    // A pod that ended while usage was being read has released its resources.
    const victim = ranked.find(({ pod, isCritical }) => !isCritical && evictor.isCandidate(pod));
    if (victim === undefined) {
      log.warn("no pod can be evicted", { signal: threshold.signal, criticalPods: ranked.length });
      return;
    }
    if (changed.includes(threshold) && this.#tellOfChange(victim, threshold, because)) return;
    this.#evict(victim, { ranked, threshold, because }, { ...seen, due });
  }

  /**
   * Reports the pod that a changed configuration would evict. @returns whether the eviction waits for a confirmation
   */
  #tellOfChange({ pod }: Ranked, { signal }: Threshold, cause: Cause): boolean {
    const { journal, log, accepted } = this.#deps;
    const name = fullName(pod.metadata);
    const { waits } = accepted;
    const until = waits ? "; it stays until podwright evict --confirm" : "";
    const message = `the thresholds of the last start would not evict ${name} for ${signal}${until}`;
    const isNew = this.#told !== message;
    this.#told = message;
    if (!isNew) return waits;
    log.warn("changed eviction thresholds would evict a pod", { pod: name, signal, waitsForConfirmation: waits });
    journal.record({ kind: "decision", what: "EvictionByChange", message, pod: podRef(pod), cause });
    return waits;
  }

  #evict(
    victim: Ranked,
    {
      ranked,
      threshold,
      because,
    }: { readonly ranked: readonly Ranked[]; readonly threshold: Threshold; readonly because: Cause },
    { due, observations, atMs }: Pick<MachineState, "observations" | "atMs"> & { readonly due: readonly Threshold[] },
  ): void {
    const { pod, usage } = victim;
    const { signal } = threshold;
    const nowMs = this.#deps.clock.monotonic();
    const before = this.#histories.get(signal)?.text(pod.metadata.uid, nowMs) ?? "";
    const starvation = { resource: resourceOf(signal), due, observations };
    this.#deps.evictor.evict(pod, {
      signal,
      ...evictionMessage(pod, usage, starvation),
      explanation: `${victimText(ranked, victim, signal)}${before === "" ? "" : `; recent usage: ${before}`}`,
      graceSeconds: evictionGraceSeconds(pod, threshold, this.#maxPodGraceSeconds),
      disruption: true,
      because,
      data: { ages: Object.fromEntries(due.map((each) => [each.signal, nowMs - atMs])) },
    });
  }
}
