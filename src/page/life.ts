import type { PodUid } from "../base/ids.ts";
import { blame } from "../journal/blame.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { type Subject, timeline, type TimelineLine, why } from "../journal/explain.ts";
import type { BlamedPhase } from "../journal/phase.ts";
import { causeText, stepText } from "../journal/render.ts";
import type { Step } from "../journal/steps.ts";
import { printable } from "../journal/text.ts";
import type { LifeLine, LifeView, Outcome, PhaseView, SubjectView } from "./view.ts";

const maxLines = 300;

/**
 * A pod's timeline in words that are safe to show; undefined if the entries contain no such pod.
 * @param entries in ascending order, including those of the node
 * @param now wall-clock milliseconds
 */
export function lifeView(entries: readonly JournalEntry[], uid: PodUid, now: number): LifeView | undefined {
  const explanation = why(entries, { uid });
  const life = timeline(entries, { uid });
  const startUp = blame(entries, { uid }, now);
  if (explanation === undefined || life === undefined || startUp === undefined) return undefined;
  return {
    uid,
    subjects: explanation.subjects.map(subjectView),
    lines: life.lines.slice(-maxLines).map(lifeLine),
    omitted: Math.max(0, life.lines.length - maxLines),
    startUp: { outcome: startUp.outcome, totalMs: startUp.totalMs, phases: startUp.phases.map(phaseView) },
    ...(explanation.incarnation.truncated && { truncated: true }),
  };
}

/** The life of a pod of which the journal has no entry any more. */
export function unrecordedLife(uid: PodUid): LifeView {
  const startUp = { outcome: "starting", totalMs: 0, phases: [] } as const;
  return { uid, subjects: [], lines: [], omitted: 0, startUp, truncated: true };
}

function subjectView({ container, last, after, causes, next }: Subject): SubjectView {
  return {
    ...named(container),
    last: { text: stepText(last), time: last.time, ...outcomeOf(last) },
    ...(after !== undefined && { after: { text: stepText(after), time: after.time } }),
    because: causes.map((cause) => {
      const time = cause.evidence?.time;
      return { text: causeText(cause), ...(time !== undefined && { time }) };
    }),
    ...(next?.until !== undefined && { next: { text: printable(next.message), until: next.until } }),
  };
}

function lifeLine({ step, sinceStartMs }: TimelineLine): LifeLine {
  return {
    seq: step.seq,
    time: step.time,
    sinceMs: sinceStartMs,
    kind: step.kind,
    ...named(step.container),
    what: printable(step.what),
    text: stepText(step),
    ...outcomeOf(step),
    because: step.causes.map(causeText),
  };
}

function phaseView({
  kind,
  label,
  container,
  offsetMs,
  durationMs,
  queuedMs,
  result,
  critical,
}: BlamedPhase): PhaseView {
  return {
    kind,
    label: printable(label),
    ...named(container),
    offsetMs,
    durationMs,
    ...(queuedMs !== undefined && { queuedMs }),
    result,
    critical,
  };
}

function named(container: string | undefined): { readonly container?: string } {
  return container === undefined ? {} : { container: printable(container) };
}

function outcomeOf({ ending }: Step): { readonly outcome?: Outcome } {
  return ending === undefined ? {} : { outcome: ending.result };
}
