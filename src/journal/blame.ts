import type { Json } from "../base/json.ts";
import type { JournalEntry, PodRef } from "./entry.ts";
import { type Incarnation, incarnations } from "./explain.ts";
import { criticalChain } from "./critical-chain.ts";
import type { BlamedPhase, Phase } from "./phase.ts";
import { endSeq, type Step, stepsOf } from "./steps.ts";
import { termOf } from "./vocabulary.ts";
import type { PhaseKind } from "./vocabulary/term.ts";

/** The phases of a pod's start-up until it was first ready, as JSON. */
export interface Blame {
  readonly incarnation: Incarnation;
  /** How the start-up ended; ended: it exited or was stopped without ever being ready. */
  readonly outcome: "ready" | "ended" | "starting";
  /** From the pod's first entry to the end of the start-up, or so far. */
  readonly totalMs: number;
  /** In order of their begin. */
  readonly phases: readonly BlamedPhase[];
}

/** The end of the start-up: later entries do not belong to it. */
interface End {
  readonly outcome: Blame["outcome"];
  readonly time: number;
  readonly seq: number;
}

type Data = NonNullable<JournalEntry["data"]>;

/**
 * Measures the start-up of the newest pod that `pod` identifies (by UID, or namespace and name). Undefined without an
 * entry about it.
 * @param entries in ascending order
 * @param now wall-clock milliseconds; the end of unfinished phases
 */
export function blame(entries: readonly JournalEntry[], pod: Partial<PodRef>, now: number): Blame | undefined {
  const [incarnation] = incarnations(entries, pod);
  if (incarnation === undefined) return undefined;
  const all = entries.filter((entry) => entry.pod?.uid === incarnation.pod.uid);
  const end = endOf(all) ?? { outcome: "starting", time: now, seq: Number.POSITIVE_INFINITY };
  const own = all.filter((entry) => entry.seq <= end.seq);
  const phases = new StartUp(entries, own, incarnation.firstTime, end.time).phases();
  const totalMs = Math.max(0, end.time - incarnation.firstTime);
  return { incarnation, outcome: end.outcome, totalMs, phases: criticalChain(phases, totalMs) };
}

/** When the pod was first ready, or when it was certain that it would not be. */
function endOf(own: readonly JournalEntry[]): End | undefined {
  const kinds = containerKinds(own);
  const ready = new Map<string, boolean>();
  for (const entry of own) {
    const { what, container, data, time, seq } = entry;
    const hasEnded = what === "PodPhaseChanged" && (data?.["to"] === "Succeeded" || data?.["to"] === "Failed");
    if (hasEnded || what === "PodTerminating") return { outcome: "ended", time, seq };
    if (what !== "ContainerStateChanged" || container === undefined) continue;
    const kind = kinds.get(container);
    if (kind === "init" || kind === "ephemeral") continue;
    ready.set(container, data?.["ready"] === true);
    if ([...ready.values()].every(Boolean)) return { outcome: "ready", time, seq };
  }
  return undefined;
}

/** The kind of each started container: `init`, `sidecar`, `regular` or `ephemeral`. */
function containerKinds(own: readonly JournalEntry[]): ReadonlyMap<string, Json> {
  const starts = own.filter(({ kind, what }) => kind === "action" && what === "StartContainer");
  return new Map(starts.map(({ container = "", data }) => [container, data?.["kind"] ?? "regular"]));
}

/** Extracts the phases of a start-up from its entries. */
class StartUp {
  readonly #own: readonly JournalEntry[];
  readonly #bySeq: ReadonlyMap<number, JournalEntry>;
  readonly #steps: readonly Step[];
  readonly #kinds: ReadonlyMap<string, Json>;
  readonly #firstTime: number;
  readonly #endTime: number;

  /** @param entries including those of the node, which show podwright's restarts */
  constructor(entries: readonly JournalEntry[], own: readonly JournalEntry[], firstTime: number, endTime: number) {
    this.#own = own;
    this.#bySeq = new Map(own.map((entry) => [entry.seq, entry]));
    this.#steps = stepsOf(entries).filter(({ seq }) => this.#bySeq.has(seq));
    this.#kinds = containerKinds(own);
    this.#firstTime = firstTime;
    this.#endTime = endTime;
  }

  phases(): Phase[] {
    const waited = new Set<string>();
    const found = this.#steps.flatMap((step): readonly Phase[] => {
      if (step.kind === "action") return [this.#action(step), ...this.#life(step)];
      if (step.what === "ImagePresent") return [this.#phase("image", "image present", step, 0, "done")];
      const wait = this.#wait(step, waited);
      return wait === undefined ? [] : [wait];
    });
    return found.toSorted((a, b) => a.offsetMs - b.offsetMs);
  }

  #action(step: Step): Phase {
    const { ending } = step;
    const data: Data = this.#bySeq.get(step.seq)?.data ?? {};
    // An outcome after the end of the start-up does not belong to it.
    const isIn = ending?.seq !== undefined && this.#bySeq.has(ending.seq);
    const ranMs = isIn ? Math.round(ending.durationMs ?? 0) : this.#endTime - step.time;
    const result = isIn || ending?.result === "interrupted" ? ending.result : "running";
    const { kind, label } = wordsFor(step, data);
    const pullMs =
      isIn && ending.seq !== undefined ? numberOf(this.#bySeq.get(ending.seq)?.data?.["pullMs"]) : undefined;
    if (pullMs !== undefined) {
      // The outcome has the pull's own duration; the rest was the wait for a slot.
      return { ...this.#phase(kind, label, step, ranMs, result), ...queued(ranMs - pullMs) };
    }
    const before = Math.round(numberOf(data["queuedMs"]) ?? 0);
    const phase = this.#phase(kind, label, step, ranMs + before, result);
    return { ...phase, offsetMs: Math.max(0, phase.offsetMs - before), ...queued(before) };
  }

  /** The phases of a started container, until it was ready or ended. */
  #life(start: Step): readonly Phase[] {
    const { container = "", ending } = start;
    if (start.what !== "StartContainer" || ending?.result !== "done" || ending.time === undefined) return [];
    const isOfIt = (entry: JournalEntry): boolean => entry.container === container && entry.seq > endSeq(start);
    const later = this.#own.filter(isOfIt);
    const died = later.find(({ what }) => what === "ContainerDied");
    const ready = later.find(({ what, data }) => what === "ContainerStateChanged" && data?.["ready"] === true);
    const kind = this.#kinds.get(container);
    const isInit = kind === "init";
    if (died !== undefined && (isInit || ready === undefined || died.seq < ready.seq)) {
      const seenMs = died.time - ending.time;
      const ranMs = Math.min(seenMs, numberOf(died.data?.["ranMs"]) ?? seenMs);
      const label = `ran, exit code ${numberOf(died.data?.["exitCode"]) ?? "unknown"}`;
      const result = died.data?.["exitCode"] === 0 ? "done" : "failed";
      return [this.#phase("run", label, { container, time: ending.time }, ranMs, result)];
    }
    const hook = this.#steps.find((step) => {
      return step.what === "PostStartHook" && step.container === container && step.seq > endSeq(start);
    });
    // During its hook, readiness is not expected.
    if (hook !== undefined && (hook.ending?.time === undefined || hook.ending.result !== "done")) return [];
    const since = hook?.ending?.time ?? ending.time;
    const untilMs = (ready?.time ?? this.#endTime) - since;
    const label = isInit ? "runs" : ready === undefined ? "not ready yet" : "until ready";
    const result = ready === undefined ? "running" : "done";
    const phaseKind = isInit ? "run" : kind === "sidecar" ? "sidecar" : "ready";
    return [this.#phase(phaseKind, label, { container, time: since }, untilMs, result)];
  }

  /** @param waited ends of known waits: a repeated entry about a wait is not a second wait */
  #wait(step: Step, waited: Set<string>): Phase | undefined {
    const { phase } = termOf(step.what);
    if (phase?.kind !== "wait") return undefined;
    const next = this.#steps.find((other) => {
      return other.kind === "action" && other.seq > step.seq && (step.container ?? other.container) === other.container;
    });
    const key = `${step.container ?? ""} ${next?.seq ?? "none"}`;
    if (waited.has(key)) return undefined;
    waited.add(key);
    const untilMs = (next?.time ?? this.#endTime) - step.time;
    return this.#phase("wait", phase.label, step, untilMs, next === undefined ? "running" : "done");
  }

  #phase(
    kind: PhaseKind,
    label: string,
    { container, time }: Pick<Step, "container" | "time">,
    durationMs: number,
    result: Phase["result"],
  ): Phase {
    const offsetMs = Math.max(0, time - this.#firstTime);
    const of = container === undefined ? {} : { container };
    return { kind, label, ...of, offsetMs, durationMs: Math.max(0, Math.round(durationMs)), result };
  }
}

function wordsFor({ what, message }: Step, data: Data): Pick<Phase, "kind" | "label"> {
  const { phase } = termOf(what);
  if (phase === undefined) return { kind: "other", label: message };
  const again = numberOf(data["attempt"]) ?? 0;
  const label = phase.label.replaceAll(/\{(\w+)\}/g, (_, field: string) => textOf(data[field]));
  return { kind: phase.kind, label: again === 0 ? label : `${label}, attempt ${again}` };
}

function queued(ms: number): { queuedMs?: number } {
  return ms >= 1 ? { queuedMs: Math.round(ms) } : {};
}

function numberOf(value: Json | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
