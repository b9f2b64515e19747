import type { Pod } from "../api/pod.ts";
import type { Json } from "../base/json.ts";
import type { StartUp } from "../base/start-up.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { PodKiller } from "../pods/pod-killer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { evicted, immediateGraceSeconds } from "./evicted.ts";
import type { LimitSignal } from "./storage-limits.ts";
import type { Signal } from "./thresholds.ts";
import { type EvictionPod, isVictim, Victims } from "./victims.ts";

/** The kubelet's part in evictions. */
export interface EvictionServices {
  readonly pods: { list(): readonly EvictionPod[] };
  readonly killer: Pick<PodKiller, "kill">;
  /** At "allKnown" it includes the pods of earlier runs. */
  readonly startUp: Pick<StartUp, "has">;
}

export interface EvictorDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
}

/** The reason of an eviction, and its messages. */
export interface Eviction {
  readonly signal: Signal | LimitSignal;
  /** For the status and the Event, in upstream's words. */
  readonly message: string;
  /** Why this pod was chosen, for `podwright why`. */
  readonly explanation: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly graceSeconds: number;
  /** It is evicted for the node, and not for a limit of its own. */
  readonly disruption: boolean;
  readonly because: Cause;
  readonly data?: { readonly [key: string]: Json };
}

/** Evicts pods, and knows whether some are not gone yet. */
export class Evictor {
  readonly #deps: EvictorDependencies;
  readonly #victims: Victims;
  #services: EvictionServices | undefined;
  /** When the last pod was evicted, monotonic ms. */
  #evictedMs = Number.NEGATIVE_INFINITY;

  /** @param maxPodGraceSeconds evictionMaxPodGracePeriod */
  constructor(deps: EvictorDependencies, maxPodGraceSeconds: number) {
    this.#deps = deps;
    this.#victims = new Victims(() => this.#services?.pods.list() ?? [], maxPodGraceSeconds);
  }

  connect(services: EvictionServices): void {
    this.#services = services;
  }

  get knowsAllPods(): boolean {
    return this.#services?.startUp.has("allKnown") === true;
  }

  /** Running pods that an eviction would stop, or stop sooner than they stop anyway. */
  candidates(graceSeconds = immediateGraceSeconds): Pod[] {
    const soonestMs = this.#deps.clock.monotonic() + Math.max(immediateGraceSeconds, graceSeconds) * 1000;
    return (this.#services?.pods.list() ?? []).flatMap((known) => {
      const { pod, status } = known.view;
      const runs =
        status.sandboxes.some(({ ready }) => ready) || status.containers.some((each) => each.state === "running");
      return pod !== undefined && runs && runsBeyond(known, soonestMs) ? [pod] : [];
    });
  }

  /** Whether the pod can still be evicted, with that grace period. */
  isCandidate({ metadata }: Pod, graceSeconds = immediateGraceSeconds): boolean {
    return this.candidates(graceSeconds).some((pod) => pod.metadata.uid === metadata.uid);
  }

  evict(pod: Pod, eviction: Eviction): void {
    const { journal, log } = this.#deps;
    const { signal, message, explanation, annotations, graceSeconds, because, data } = eviction;
    log.warn("evicting pod", { ...podRef(pod), signal, reason: explanation, graceSeconds });
    const entry = journal.record({
      kind: "decision",
      what: "PodEvicted",
      message: explanation,
      pod: podRef(pod),
      cause: because,
      data: { ...data, signal, eventMessage: message, ...(annotations && { annotations }) },
    });
    const why: Cause = { code: "PodEvicted", message: explanation, entry, because };
    this.#evictedMs = this.#deps.clock.monotonic();
    void this.#services?.killer.kill(pod, evicted(message, why, graceSeconds, eviction.disruption));
  }

  /** Whether a pod was evicted after that moment. @param atMs monotonic */
  hasEvictedSince(atMs: number): boolean {
    return this.#evictedMs > atMs;
  }

  /** Whether evicted pods still hold resources, also those of earlier runs. */
  get isPending(): boolean {
    const { isPending, overdue } = this.#victims.look(this.#deps.clock.monotonic());
    for (const pod of overdue) this.#deps.log.warn("evicted pod was not cleaned up in time", { pod });
    return isPending;
  }
}

/**
 * Whether the pod may run for longer than until then. Not one that is killed before: were it chosen although nothing can
 * kill it, it would be chosen again and again. One that has ended keeps its phase, and one that no source has any more
 * has no status that could tell of the eviction.
 * @param atMs monotonic
 */
function runsBeyond(known: EvictionPod, atMs: number): boolean {
  const { state } = known.view;
  if (state.kind !== "terminating") return state.kind === "syncing";
  const { outcome, lasts } = state.ending;
  const phase = known.status?.phase;
  const isComplete = (outcome === "asContainers" && lasts) || phase === "Succeeded" || phase === "Failed";
  return !isComplete && !known.forgotten && !isVictim(known) && state.killAtMs > atMs;
}
