import { type EntryName, termOf } from "../journal/vocabulary.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { printable } from "../journal/text.ts";
import { span } from "./span.ts";

/**
 * What a pod that ends waits for, once its containers have ended: a volume that does not answer, a step that failed or
 * takes its time; undefined: nothing that is known. Pure.
 */
export function nodeHoldout(entries: readonly JournalEntry[], now: number): string | undefined {
  const [first, ...others] = volumeHoldouts(entries);
  if (first === undefined) return stepText(lastStep(entries, ends), now);
  return `${printable(first.message)}, reported ${span(now - first.time)} ago${andMore(others)}`;
}

/** The volumes alone that a pod waits for which has stopped; undefined: none that is known. Pure. */
export function volumeHoldout(entries: readonly JournalEntry[]): string | undefined {
  const [first, ...others] = volumeHoldouts(entries);
  return first && `${printable(first.message)}${andMore(others)}`;
}

/** A volume that is held has a reason, and one that is silent has none. */
function volumeHoldouts(entries: readonly JournalEntry[]): JournalEntry[] {
  const held = open(entries, "VolumeHeld", "VolumeHeldOver");
  return held.length > 0 ? held : open(entries, "VolumeSilent", "VolumeSilenceOver");
}

function andMore(others: readonly unknown[]): string {
  return others.length > 0 ? `, and ${others.length} more` : "";
}

/**
 * What keeps a pod that has stopped at the API server. Pure.
 * @param finalizers the pod's
 */
export function serverHoldout(entries: readonly JournalEntry[], finalizers: readonly string[], now: number): string {
  const deletion = lastStep(entries, ({ what }) => what === "DeletePod");
  if (deletion === undefined) {
    const status = lastStep(entries, ({ what }) => what === "PatchPodStatus");
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

function lastStep(entries: readonly JournalEntry[], isMeant: (entry: JournalEntry) => boolean): Step | undefined {
  const action = entries.findLast((entry) => entry.kind === "action" && isMeant(entry));
  if (action === undefined) return undefined;
  return { action, outcome: entries.findLast(({ kind, of }) => kind === "outcome" && of === action.seq) };
}

/** Undefined: done. */
function stepText(step: Step | undefined, now: number): string | undefined {
  if (step === undefined || step.outcome?.result === "done") return undefined;
  const { action, outcome } = step;
  if (outcome === undefined) return `${printable(action.message)}, for ${span(now - action.time)}`;
  return `${printable(action.message)} failed: ${printable(outcome.message)}`;
}
