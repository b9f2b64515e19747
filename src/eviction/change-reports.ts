import { fullName } from "../api/full-name.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { AcceptedEvictions } from "./accepted-evictions.ts";
import type { EvictionChange } from "./earlier-start.ts";
import type { Evictor } from "./evictor.ts";
import type { LimitSignal } from "./storage-limits.ts";
import type { Signal } from "./thresholds.ts";

export interface ChangeReportsDependencies {
  readonly journal: Recorder;
  readonly log: Logger;
  readonly evictor: Pick<Evictor, "isCandidate">;
  readonly accepted: Pick<AcceptedEvictions, "waits">;
}

/** Why pods are evicted that earlier settings would spare. */
export interface ChangedEviction {
  readonly signal: Signal | LimitSignal;
  readonly change: EvictionChange;
  readonly cause: Cause;
}

/** Pods that are remembered for a signal, and those that are named. */
const maxKept = 50;
const maxNamed = 10;

/** The last report about a signal. */
interface Told {
  readonly signal: string;
  readonly change: EvictionChange;
  readonly waits: boolean;
  /** The newest last. */
  readonly pods: Map<PodUid, Pod>;
  /** Those that were not named the last time. */
  unnamed: number;
}

/** Reports the pods that a changed configuration evicts, or would evict if that was confirmed. */
export class ChangeReports {
  readonly #deps: ChangeReportsDependencies;
  readonly #told = new Map<string, Told>();

  constructor(deps: ChangeReportsDependencies) {
    this.#deps = deps;
  }

  /**
   * Reports each pod once.
   * @param pods those that would have to go, in the order of eviction
   * @returns whether their evictions wait for a confirmation
   */
  tell(pods: readonly Pod[], { signal, change, cause }: ChangedEviction): boolean {
    const { journal, log, accepted } = this.#deps;
    const { waits } = accepted;
    const key = `${signal} ${change} ${waits}`;
    const told: Told = this.#told.get(key) ?? { signal, change, waits, pods: new Map(), unnamed: 0 };
    this.#told.set(key, told);
    const named = pods.slice(0, maxNamed);
    told.unnamed = pods.length - named.length;
    const news = named.filter(({ metadata }) => !told.pods.has(metadata.uid));
    for (const pod of named) {
      told.pods.delete(pod.metadata.uid);
      told.pods.set(pod.metadata.uid, pod);
    }
    for (const uid of [...told.pods.keys()].slice(0, -maxKept)) told.pods.delete(uid);
    if (news.length === 0) return waits;
    const names = news.map(({ metadata }) => fullName(metadata));
    const more = told.unnamed > 0 && { more: told.unnamed };
    log.warn("changed eviction settings would evict pods", {
      pods: names,
      ...more,
      signal,
      waitsForConfirmation: waits,
    });
    for (const pod of news) {
      const follows = pod === pods[0] ? "" : "; it may have to go after others";
      const message = `${said(change, [pod], 0, signal)}${waits ? stays([pod]) : follows}`;
      journal.record({ kind: "decision", what: "EvictionByChange", message, pod: podRef(pod), cause });
    }
    return waits;
  }

  /** The last reports; undefined: none. Of pods that wait for a confirmation only those that still can be evicted. */
  get text(): string | undefined {
    const { evictor } = this.#deps;
    const messages = [...this.#told.values()].flatMap(({ signal, change, waits, pods, unnamed }) => {
      const shown = [...pods.values()].filter((pod) => !waits || evictor.isCandidate(pod));
      const named = shown.slice(-maxNamed);
      if (named.length === 0) return [];
      return [`${said(change, named, shown.length - named.length + unnamed, signal)}${waits ? stays(named) : ""}`];
    });
    return messages.length === 0 ? undefined : messages.join("; ");
  }

  /** The changed settings have been confirmed. */
  clear(): void {
    this.#told.clear();
  }
}

function said(change: EvictionChange, pods: readonly Pod[], more: number, signal: string): string {
  const names = pods.map(({ metadata }) => fullName(metadata)).join(", ");
  const whom = more > 0 ? `${names} and ${more} more` : names;
  return {
    changed: `the settings of the last start would not evict ${whom} for ${signal}`,
    unknown: `it is not known whether the settings of the last start would evict ${whom} for ${signal}`,
  }[change];
}

function stays({ length }: readonly Pod[]): string {
  return `; ${length === 1 ? "it stays" : "they stay"} until podwright evict --confirm`;
}
