import { isCriticalPod } from "../api/pod-kind.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { withDeadline } from "../base/deadline.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { EvictionPreview, HealthCheck } from "../server/local-api.ts";
import type { AcceptedEvictions } from "./accepted-evictions.ts";
import { ChangeReports } from "./change-reports.ts";
import { type EvictionServices, Evictor } from "./evictor.ts";
import { type FileSystems, isOfDisk, needsLayout, withContainerFs } from "./file-systems.ts";
import { LimitChecks } from "./limit-checks.ts";
import { LimitEvictions } from "./limit-evictions.ts";
import type { LookAtMachine, MachineLook, MachineState } from "./machine-state.ts";
import { nearPeriodMs, nearThresholds, nextLookMs, type PastLook, usualPeriodMs, withLook } from "./next-look.ts";
import { NodeEvictions } from "./node-evictions.ts";
import type { NodeReclaim } from "./node-reclaim.ts";
import type { PodUsageReader } from "./pod-usage.ts";
import { isMet, type Observations, type Pressure, type PressureLook, withoutDisks, withoutLayout } from "./pressure.ts";
import { type NodePressure, PressureMonitor } from "./pressure-monitor.ts";
import { placeText } from "./rank-words.ts";
import { RecentUsage } from "./recent-usage.ts";
import { standingText } from "./standing.ts";
import { resourceOf, type Signal, signals, type Threshold } from "./thresholds.ts";
import { UnmeasuredSources } from "./unmeasured-sources.ts";
import { byUrgency } from "./urgency.ts";

export interface EvictionDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly look: LookAtMachine;
  readonly usage: PodUsageReader;
  readonly accepted: AcceptedEvictions;
}

export interface EvictionConfig {
  /** Without containerfs. */
  readonly thresholds: readonly Threshold[];
  /** evictionPressureTransitionPeriod. */
  readonly transitionMs: number;
  /** evictionMaxPodGracePeriod. */
  readonly maxPodGraceSeconds: number;
  /** Whether storage limits of pods are enforced (localStorageCapacityIsolation). */
  readonly enforcesStorageLimits: boolean;
  /** Observes memory each second (kernelMemcgNotification on cgroup v1). */
  readonly watchesMemory: boolean;
}

const lookLimitMs = 20_000;
/** How long others wait for the first observation. */
const firstLookMs = 5_000;
/** How long the runtime may take to say where images and layers are before the node's own disk is defended without. */
const layoutPatienceMs = 60_000;
const missedLayout = {
  name: "eviction for disks",
  ok: true,
  warning: true,
  detail:
    "no pod is evicted for the disks of images and layers, and for the node's own after a minute, by logs and volumes " +
    "alone: the runtime does not say where images and layers are, or they are not there",
  remedy: "see what the runtime answers: crictl imagefsinfo; its mount points have to exist on this machine",
} satisfies HealthCheck;
/** Interval of checking whether an evicted pod is gone. */
const pendingPeriodMs = 500;
/** Unknown pods may rank before known ones: how long evictions for the node wait for them. */
const unknownPodsMs = 60_000;

/**
 * Keeps the node from running out of memory, disk and processes (upstream's eviction manager). One loop observes the
 * machine, reports its pressure, and evicts pods: those above a limit of their own, and, one after the other, the first
 * of the ranking for a starved resource.
 */
export class EvictionManager implements NodePressure {
  readonly #deps: EvictionDependencies;
  readonly #config: EvictionConfig;
  readonly #monitor: PressureMonitor;
  readonly #evictor: Evictor;
  readonly #reports: ChangeReports;
  readonly #recent: RecentUsage;
  readonly #limits: LimitChecks;
  readonly #node: NodeEvictions;
  #thresholds: readonly Threshold[];
  /** Where images and writable layers are, as last observed; undefined: it never was. */
  #fileSystems: FileSystems | undefined;
  /** It was said that they are not known, at this moment, monotonic ms. */
  #layoutMissedMs: number | undefined;
  readonly #unmeasured: UnmeasuredSources;
  #looks: readonly PastLook[] = [];
  #isFailing = false;
  #startedMs = 0;
  /** Monotonic ms before which nothing is reclaimed again, unless an evicted pod is gone. */
  #reclaimsAtMs = 0;
  /** Signals that have been short since the last attempt to reclaim their resources. */
  #reclaimedFor: ReadonlySet<Signal> = new Set();
  #watchesAtMs = 0;
  #watching: Promise<void> | undefined;
  #wasPending = false;
  /** The pods that there were at the last attempt, by UID, of which none could be evicted. Undefined: one could. */
  #foundNobodyOf: ReadonlySet<string> | undefined;

  constructor(deps: EvictionDependencies, config: EvictionConfig) {
    const { clock, journal, log, usage, accepted } = deps;
    this.#deps = deps;
    this.#config = config;
    this.#monitor = new PressureMonitor(deps, config.transitionMs);
    this.#unmeasured = new UnmeasuredSources(log);
    this.#thresholds = withContainerFs(config.thresholds, this.#fileSystems);
    this.#evictor = new Evictor(deps, config.maxPodGraceSeconds);
    const evictor = this.#evictor;
    const reports = new ChangeReports({ journal, log, evictor, accepted });
    this.#reports = reports;
    const limits = new LimitEvictions({ clock, usage, evictor, accepted, reports });
    this.#limits = new LimitChecks({ clock, log, limits });
    const look = async (signal: AbortSignal): Promise<MachineState> => await this.#look(signal);
    const recent = new RecentUsage({
      clock,
      usage,
      signals: () => [...this.#watched()],
      fileSystems: () => this.#fileSystems,
    });
    this.#recent = recent;
    const node = { clock, journal, log, usage, evictor, accepted, reports, recent, look };
    this.#node = new NodeEvictions(node, config.maxPodGraceSeconds);
  }

  get pressures(): readonly Pressure[] {
    return this.#monitor.pressures;
  }

  async known(signal: AbortSignal): Promise<void> {
    await this.#monitor.known(signal);
  }

  onChange(listener: () => void): Disposable {
    return this.#monitor.onChange(listener);
  }

  reclaimWith(reclaim: NodeReclaim): void {
    this.#node.reclaimWith(reclaim);
  }

  connect(services: EvictionServices): void {
    this.#evictor.connect(services);
  }

  /** The node's eviction signals, for `podwright doctor`. */
  health(): HealthCheck[] {
    const { pressures } = this;
    const kept = pressures.length === 0 ? "no pressure" : `rejecting new pods: ${pressures.join(", ")}`;
    const pressure = { name: "pressure", ok: pressures.length === 0, detail: kept };
    const known = this.#config.thresholds.length === 0 ? [] : [pressure];
    if (this.#layoutMissedMs !== undefined) known.push(missedLayout);
    known.push(...this.#unmeasured.health());
    const detail = this.#reports.text;
    if (detail === undefined) return known;
    const { waits } = this.#deps.accepted;
    const remedy = "podwright evict --confirm allows it; podwright evict --preview shows which pods";
    return [...known, { name: "eviction", ok: true, warning: true, detail, ...(waits && { remedy }) }];
  }

  /**
   * The pods in eviction order for a signal, by their current usage. Evicts nothing.
   * @param name undefined: the most urgent signal that pods are evicted for, of those that are short if any is
   * @throws PodwrightError for an unknown signal (bad input)
   */
  async preview(name: string | undefined): Promise<EvictionPreview> {
    const never = new AbortController().signal;
    const named = name === undefined ? undefined : signalNamed(name);
    const wanted = named === undefined ? this.#watched() : new Set([named]);
    const machine = await this.#observe(wanted, never).catch((error: unknown): MachineLook => {
      const unmeasured = new Map([["the machine", errorMessage(error)]]);
      return { observations: new Map(), fileSystems: this.#fileSystems, unmeasured };
    });
    const isMissed = (each: Signal): boolean => machine.fileSystems === undefined && needsLayout(each);
    const urgent = this.#byUrgency(machine.observations);
    const signal = named ?? urgent.find((each) => !isMissed(each)) ?? "memory.available";
    const { ranked, problem } = await this.#node.preview(signal, machine, never);
    const isPart =
      machine.fileSystems === undefined && (isOfDisk(signal) || (named === undefined && isOfDisk(urgent[0] ?? signal)));
    const remarks = [
      standingText(signal, this.#thresholds, machine.observations),
      ...(isPart ? [missedLayout.detail] : []),
      ...[...machine.unmeasured].map(([source, why]) => `not measured: ${source} (${why})`),
      ...(problem === undefined ? [] : [`what pods use could not be measured now (${problem})`]),
    ];
    return {
      signal,
      standing: remarks.join("; "),
      available: numberOf(machine.observations.get(signal)?.available),
      pods: (isMissed(signal) ? [] : ranked).map((each) => {
        return { ...podRef(each.pod), place: placeText(each, signal), evictable: !each.isCritical };
      }),
    };
  }

  /** Signals with thresholds, those that are short first. */
  #byUrgency(observations: Observations): Signal[] {
    const met = this.#thresholds.filter((threshold) => isMet(threshold, observations, false));
    return [...byUrgency(met), ...byUrgency(this.#thresholds)].map((each) => each.signal);
  }

  #watched(): ReadonlySet<Signal> {
    return new Set(this.#thresholds.map((threshold) => threshold.signal));
  }

  /** Images and layers lie where they lay, also while nobody can say so. */
  async #observe(wanted: ReadonlySet<Signal>, signal: AbortSignal): Promise<MachineLook> {
    const { clock, look } = this.#deps;
    const seen = await withDeadline(clock, "a check of the node's pressure", lookLimitMs, signal, (within) =>
      look(wanted, within),
    );
    return { ...seen, fileSystems: seen.fileSystems ?? this.#fileSystems };
  }

  /** Allows evictions by changed settings. @returns whether they waited for that */
  async confirm(): Promise<boolean> {
    const { accepted } = this.#deps;
    const { waits } = accepted;
    await accepted.confirm();
    this.#reports.clear();
    this.#reclaimsAtMs = 0;
    this.#limits.hasten();
    return waits;
  }

  async load(): Promise<void> {
    await this.#deps.accepted.load();
  }

  /** Runs until the signal aborts. Never rejects. Ends at once without thresholds and limits to enforce. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { thresholds, enforcesStorageLimits } = this.#config;
    if (thresholds.length === 0) this.#monitor.settle();
    if (thresholds.length === 0 && !enforcesStorageLimits) return;
    this.#startedMs = clock.monotonic();
    using _measured = this.#recent.follow();
    using _limit = clock.timer("the first check of the node's pressure", firstLookMs, () => this.#monitor.settle());
    while (!signal.aborted) {
      await this.#pass(signal);
      this.#monitor.settle();
      await clock.sleep("the next check of the node's pressure", this.#pauseMs(), signal).catch(() => {});
    }
    await Promise.all([this.#limits.ended(), this.#watching]);
  }

  async #pass(signal: AbortSignal): Promise<void> {
    try {
      // Only an observation that began after the evicted pods were gone shows whether another must go.
      const isPending = this.#evictor.isPending;
      const seen = this.#thresholds.length === 0 ? undefined : await this.#look(signal);
      this.#monitor.settle();
      if (!(await this.#enforceLimits(seen, signal)) && seen !== undefined) await this.#act(seen, isPending, signal);
      // Beside the next passes: usage on a disk that hangs is no reason to observe nothing.
      this.#watching ??= this.#watch(signal).finally(() => (this.#watching = undefined));
      this.#isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      // Conditions persist: nothing better is known.
      const message = "eviction manager cannot observe the node";
      if (!this.#isFailing) this.#deps.log.warn(message, { error: errorMessage(error) });
      this.#isFailing = true;
    }
  }

  async #look(signal: AbortSignal): Promise<MachineState> {
    const { clock, accepted } = this.#deps;
    const beganMs = clock.monotonic();
    const machine = await this.#observe(this.#watched(), signal);
    if (machine.fileSystems !== this.#fileSystems) {
      this.#fileSystems = machine.fileSystems;
      this.#thresholds = withContainerFs(this.#config.thresholds, machine.fileSystems);
    }
    this.#unmeasured.note(machine.unmeasured);
    const nowMs = clock.monotonic();
    this.#tellMissedLayout(nowMs);
    accepted.judge(machine.observations, machine.fileSystems, nowMs);
    this.#looks = withLook(this.#looks, { atMs: nowMs, observations: machine.observations });
    const pressure = this.#monitor.judge(this.#thresholds, machine.observations, nowMs);
    return { ...machine, beganMs, atMs: nowMs, pressure: this.#withLayout(pressure, nowMs) };
  }

  /**
   * Which pod goes for a disk, and what is removed before, depends on what else is on it. Conditions hold all the same. A
   * runtime that never says it must not leave the node's own disk to fill up: logs and volumes are surely there.
   */
  #withLayout(pressure: PressureLook, nowMs: number): PressureLook {
    if (this.#limits.isLate) return withoutDisks(pressure);
    if (this.#layoutMissedMs === undefined) return pressure;
    return nowMs - this.#layoutMissedMs < layoutPatienceMs ? withoutDisks(pressure) : withoutLayout(pressure);
  }

  #tellMissedLayout(nowMs: number): void {
    const isMissed = this.#fileSystems === undefined && this.#config.thresholds.some((each) => isOfDisk(each.signal));
    const before = this.#layoutMissedMs;
    this.#layoutMissedMs = isMissed ? (before ?? nowMs) : undefined;
    if (before !== undefined || !isMissed) return;
    this.#deps.log.warn("no evictions for disks: the place of images is not known");
  }

  /** @returns whether pods were evicted: then none is evicted for the node */
  async #enforceLimits(seen: MachineState | undefined, signal: AbortSignal): Promise<boolean> {
    if (!this.#config.enforcesStorageLimits) return false;
    return await this.#limits.enforce(async () => await this.#fileSystemsNow(seen, signal), signal);
  }

  /** @param wasPending whether evicted pods were waited for before the observation */
  async #act(looked: MachineState, wasPending: boolean, signal: AbortSignal): Promise<void> {
    // Limits come first, and concern disks alone.
    const seen = this.#limits.isLate ? { ...looked, pressure: withoutDisks(looked.pressure) } : looked;
    const nowMs = this.#deps.clock.monotonic();
    // Pods that an earlier run evicted may have become known meanwhile.
    const isPending = wasPending || this.#evictor.isPending;
    if (this.#wasPending && !isPending) this.#reclaimsAtMs = 0;
    this.#wasPending = isPending;
    // A pod that came since does not wait for the next attempt.
    if (this.#hasNewPod()) this.#reclaimsAtMs = 0;
    const due = new Set(seen.pressure.due.map((threshold) => threshold.signal));
    // What has just become short does not wait for the next attempt on what was short before.
    if (!due.isSubsetOf(this.#reclaimedFor)) this.#reclaimsAtMs = 0;
    this.#reclaimedFor = this.#reclaimedFor.intersection(due);
    if (seen.pressure.due.length === 0 || isPending || nowMs < this.#reclaimsAtMs) return;
    if (!this.#evictor.knowsAllPods && nowMs - this.#startedMs < unknownPodsMs) return;
    this.#reclaimsAtMs = nowMs + usualPeriodMs;
    this.#reclaimedFor = due;
    // Measuring storage may have taken a while.
    const isFresh = nowMs - seen.atMs < nearPeriodMs;
    const pods = new Set<string>(this.#evictor.candidates().map(({ metadata }) => metadata.uid));
    const outcome = await this.#node.reclaim(isFresh ? seen : await this.#look(signal), signal);
    this.#foundNobodyOf = outcome === "nobody" ? pods : undefined;
    // Nothing was decided: the next observation shows what the pods that went have left.
    if (outcome === "pending") this.#reclaimsAtMs = 0;
    // An evicted pod may be gone by the next observation.
    this.#wasPending = this.#evictor.isPending;
  }

  /** Whether there is a pod that may be evicted, after an attempt that found none. */
  #hasNewPod(): boolean {
    const considered = this.#foundNobodyOf;
    if (considered === undefined) return false;
    return this.#evictor.candidates().some((pod) => !isCriticalPod(pod) && !considered.has(pod.metadata.uid));
  }

  /** Records the pods' usage of what gets short, for the explanation of an eviction. Never rejects. */
  async #watch(signal: AbortSignal): Promise<void> {
    const nowMs = this.#deps.clock.monotonic();
    if (nowMs < this.#watchesAtMs) return;
    const near = new Set(nearThresholds(this.#thresholds, this.#looks).map((threshold) => threshold.signal));
    if (near.size === 0) return;
    this.#watchesAtMs = nowMs + usualPeriodMs;
    try {
      for (const about of near) await this.#recent.watch(about, this.#evictor.candidates(), signal);
    } catch (error) {
      if (signal.aborted) return;
      // The explanation of an eviction gets shorter by this, nothing else.
      this.#deps.log.debug("cannot measure what pods use near a threshold", { error: errorMessage(error) });
    }
  }

  /** Without thresholds for disks nobody has asked for the location of images and containers. */
  async #fileSystemsNow(seen: MachineState | undefined, signal: AbortSignal): Promise<FileSystems | undefined> {
    return seen?.fileSystems ?? (await this.#observe(new Set(["nodefs.available"]), signal)).fileSystems;
  }

  #pauseMs(): number {
    if (this.#evictor.isPending) return pendingPeriodMs;
    const { watchesMemory } = this.#config;
    const isWatched = watchesMemory && this.#thresholds.some(({ signal }) => resourceOf(signal) === "memory");
    return isWatched ? nearPeriodMs : nextLookMs(this.#thresholds, this.#looks);
  }
}

function signalNamed(name: string): Signal {
  const signal = signals.find((each) => each === name);
  if (signal !== undefined) return signal;
  throw new PodwrightError(ExitCode.badInput, `${name} is not an eviction signal`, {
    remedy: `use one of ${signals.join(", ")}`,
  });
}

function numberOf(amount: bigint | undefined): number | undefined {
  return amount === undefined ? undefined : Number(amount);
}
