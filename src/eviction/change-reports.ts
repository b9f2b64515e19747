import type { Pod } from "../api/pod.ts";
import { fullName } from "../api/full-name.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { AcceptedEvictions, EvictionChange } from "./accepted-evictions.ts";
import type { Evictor } from "./evictor.ts";
import type { LimitSignal } from "./storage-limits.ts";
import type { Signal } from "./thresholds.ts";

export interface ChangeReportsDependencies {
  readonly journal: Recorder;
  readonly log: Logger;
  readonly evictor: Pick<Evictor, "isCandidate">;
  readonly accepted: Pick<AcceptedEvictions, "waits">;
}

/** Messages that are remembered, and those that are shown together. */
const maxKept = 50;
const maxShown = 3;

/** Reports the pods that a changed configuration evicts, or would evict if that was confirmed. */
export class ChangeReports {
  readonly #deps: ChangeReportsDependencies;
  /** By message; the newest last. */
  readonly #told = new Map<string, { readonly pod: Pod; readonly waits: boolean }>();

  constructor(deps: ChangeReportsDependencies) {
    this.#deps = deps;
  }

  /** Reports a pod once. @returns whether its eviction waits for a confirmation */
  tell(pod: Pod, signal: Signal | LimitSignal, change: EvictionChange, cause: Cause): boolean {
    const { journal, log, accepted } = this.#deps;
    const { waits } = accepted;
    const name = fullName(pod.metadata);
    const said = {
      changed: `the settings of the last start would not evict ${name} for ${signal}`,
      unknown: `it is not known whether the settings of the last start would evict ${name} for ${signal}`,
    }[change];
    const message = `${said}${waits ? "; it stays until podwright evict --confirm" : ""}`;
    const isNew = !this.#told.delete(message);
    this.#told.set(message, { pod, waits });
    const [oldest] = this.#told.keys();
    if (oldest !== undefined && this.#told.size > maxKept) this.#told.delete(oldest);
    if (!isNew) return waits;
    log.warn("changed eviction settings would evict a pod", { pod: name, signal, waitsForConfirmation: waits });
    journal.record({ kind: "decision", what: "EvictionByChange", message, pod: podRef(pod), cause });
    return waits;
  }

  /** The last reports; undefined: none. Of pods that wait for a confirmation only those that still can be evicted. */
  get text(): string | undefined {
    const { evictor } = this.#deps;
    const shown = [...this.#told].filter(([, { pod, waits }]) => !waits || evictor.isCandidate(pod));
    const messages = shown.slice(-maxShown).map(([message]) => message);
    return messages.length === 0 ? undefined : messages.join("; ");
  }

  /** The changed settings have been confirmed. */
  clear(): void {
    this.#told.clear();
  }
}
