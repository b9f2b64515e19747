import { type EntryName, termOf } from "../journal/vocabulary.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { printable } from "../journal/text.ts";
import { awayDrivers, awayText } from "./away-drivers.ts";
import type { AwayDriver } from "./local-api.ts";
import { span } from "./span.ts";

/** What is known of a pod that ends. */
interface Ending {
  /** Of the pod, by sequence number. */
  readonly entries: readonly JournalEntry[];
  /** Of podwright's last start: what was open before it is over, without an entry; 0: unknown. */
  readonly startSeq: number;
  /** Of the node itself, by sequence number: they tell since when a driver is away. */
  readonly nodeEntries?: readonly JournalEntry[];
  /** Wall-clock milliseconds. */
  readonly now: number;
}

/**
 * What a pod that ends waits for, once its containers have ended: a volume that does not answer, a step that failed or
 * takes its time; undefined: nothing that is known. Pure.
 */
export function nodeHoldout(ending: Ending): string | undefined {
  const { now, nodeEntries = [] } = ending;
  const { shown, all } = volumeHoldouts(ending);
  const [first, ...others] = shown;
  if (first === undefined) return stepText(lastStep(ending, ends), now);
  const remedy = awayText(awayDrivers(shown, nodeEntries, all), now);
  const told = `${printable(first.message)}, reported ${span(now - first.time)} ago${andMore(others)}`;
  return remedy === "" ? told : `${told}; ${remedy}`;
}

/** The volumes alone that a pod waits for which has stopped. */
interface VolumeHoldout {
  readonly holdout: string;
  /** The drivers that must return first. */
  readonly awayDrivers: readonly AwayDriver[];
}

/** @param node the entries of the node itself, if a driver is away. Pure. @returns undefined: no volume that is known */
export function volumeHoldout(
  ending: Pick<Ending, "entries" | "startSeq">,
  node: () => readonly JournalEntry[],
): VolumeHoldout | undefined {
  const { shown, all } = volumeHoldouts(ending);
  const [first, ...others] = shown;
  if (first === undefined) return undefined;
  const isAway = awayDrivers(shown, []).length > 0;
  const away = isAway ? awayDrivers(shown, node(), all) : [];
  return { holdout: `${printable(first.message)}${andMore(others)}`, awayDrivers: away };
}

/** A volume that is held has a reason, and one that is silent has none. */
function volumeHoldouts({ entries, startSeq }: Pick<Ending, "entries" | "startSeq">): {
  readonly shown: readonly JournalEntry[];
  /** A volume that is held may be silent too, and have been so before. */
  readonly all: readonly JournalEntry[];
} {
  const own = entries.filter(({ seq }) => seq > startSeq);
  const held = open(own, "VolumeHeld", "VolumeHeldOver");
  const silent = open(own, "VolumeSilent", "VolumeSilenceOver");
  return { shown: held.length > 0 ? held : silent, all: [...held, ...silent] };
}

function andMore(others: readonly unknown[]): string {
  return others.length > 0 ? `, and ${others.length} more` : "";
}

/**
 * What keeps a pod that has stopped at the API server. Pure.
 * @param finalizers the pod's
 */
export function serverHoldout(ending: Ending, finalizers: readonly string[]): string {
  const { now } = ending;
  const deletion = lastStep(ending, ({ what }) => what === "DeletePod");
  if (deletion === undefined) {
    const status = lastStep(ending, ({ what }) => what === "PatchPodStatus");
    return stepText(status, now) ?? "its deletion will be sent to the API server next";
  }
  const unfinished = stepText(deletion, now);
  if (unfinished !== undefined) return unfinished;
  if (finalizers.length === 0) return "the API server has not removed it yet";
  return `finalizers keep it at the API server: ${finalizers.map(printable).join(", ")}`;
}

/** Observations that nothing has ended, oldest first. */
function open(entries: readonly JournalEntry[], begin: EntryName, end: EntryName): JournalEntry[] {
  const found = new Map<string, JournalEntry>();
  for (const entry of entries) {
    if (entry.what === begin) found.set(entry.message, entry);
    else if (entry.what === end) found.delete(entry.message);
  }
  return [...found.values()];
}

interface Step {
  readonly action: JournalEntry;
  readonly outcome: JournalEntry | undefined;
}

function ends({ what }: JournalEntry): boolean {
  return termOf(what).why !== "upkeep" && what !== "PatchPodStatus" && what !== "DeletePod";
}

/** Undefined: none, or it was interrupted, and will be repeated. */
function lastStep(
  { entries, startSeq }: Pick<Ending, "entries" | "startSeq">,
  isMeant: (entry: JournalEntry) => boolean,
): Step | undefined {
  const action = entries.findLast((entry) => entry.kind === "action" && isMeant(entry));
  if (action === undefined) return undefined;
  const outcome = entries.findLast(({ kind, of }) => kind === "outcome" && of === action.seq);
  return outcome === undefined && action.seq < startSeq ? undefined : { action, outcome };
}

/** Undefined: done. */
function stepText(step: Step | undefined, now: number): string | undefined {
  if (step === undefined || step.outcome?.result === "done") return undefined;
  const { action, outcome } = step;
  if (outcome === undefined) return `${printable(action.message)}, for ${span(now - action.time)}`;
  return `${printable(action.message)} failed: ${printable(outcome.message)}`;
}
