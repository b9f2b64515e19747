import type { Explanation, Incarnation, Subject, Timeline, TimelineLine } from "./explain.ts";
import type { CauseLink, Ending, Step } from "./steps.ts";
import { termOf } from "./vocabulary.ts";
import { formatDuration, type Paint, plainPaint, printable, timeFormat, type TimeFormat, wrap } from "./text.ts";

export interface RenderOptions {
  /** Wall-clock milliseconds, for "in 8 s". */
  readonly now: number;
  /** Columns; at least 60 are used. Default 100. */
  readonly width?: number;
  readonly paint?: Paint;
  /** Such as `Europe/Berlin`; default: the system's. */
  readonly timeZone?: string;
}

interface Style {
  readonly now: number;
  readonly width: number;
  readonly paint: Paint;
  readonly format: TimeFormat;
}

const labelWidth = 9;
const timeWidth = 12;

/** `podwright why` as text, with one newline at the end. */
export function renderWhy(explanation: Explanation, options: RenderOptions): string {
  const style = styleOf(options);
  const lines = header(explanation.incarnation, style);
  // Notes about podwright come first, so that the last lines are about the pod.
  if (explanation.notes.length > 0) lines.push("");
  for (const note of explanation.notes) {
    lines.push(...row("note", stepText(note), note.time, style, style.paint.caution));
  }
  if (explanation.warnings.length > 0) lines.push("");
  for (const warning of explanation.warnings) {
    lines.push(...row("warning", stepText(warning), warning.time, style, style.paint.caution));
  }
  for (const subject of explanation.subjects) lines.push("", ...subjectLines(subject, style));
  return joined(lines, explanation.older, style);
}

/** `podwright timeline` as text, with one newline at the end. */
export function renderTimeline(timeline: Timeline, options: RenderOptions): string {
  const style = styleOf(options);
  const containerWidth = columnWidth(
    timeline.lines.map((line) => line.step.container ?? ""),
    24,
  );
  const whatWidth = columnWidth(
    timeline.lines.map((line) => line.step.what),
    28,
  );
  const lines = [...header(timeline.incarnation, style), ""];
  let day = style.format.date(timeline.incarnation.firstTime);
  for (const line of timeline.lines) {
    const date = style.format.date(line.step.time);
    if (date !== day) lines.push(style.paint.faint(date));
    day = date;
    lines.push(...timelineRow(line, containerWidth, whatWidth, style));
  }
  return joined(lines, timeline.older, style);
}

function styleOf({ now, width = 100, paint = plainPaint, timeZone }: RenderOptions): Style {
  return { now, width: Math.max(60, width), paint, format: timeFormat(timeZone) };
}

function joined(lines: readonly string[], older: readonly Incarnation[], style: Style): string {
  const all = [...lines];
  if (older.length > 0) all.push("", "earlier pods of this name:");
  for (const { pod, firstTime, lastTime, lastMessage } of older) {
    const from = `${style.format.date(firstTime)} ${style.format.time(firstTime)}`;
    const text = `${printable(pod.uid)}  ${from}, for ${formatDuration(lastTime - firstTime)}: ${printable(lastMessage)}`;
    all.push(...wrap(text, style.width - 4).map((line, index) => `${index === 0 ? "  " : "    "}${line}`));
  }
  return `${all.map((line) => line.trimEnd()).join("\n")}\n`;
}

/** The first lines of each answer: they identify the pod, and say if the journal lacks its beginning. */
export function renderHeader(
  incarnation: Incarnation,
  { paint = plainPaint, timeZone }: Pick<RenderOptions, "paint" | "timeZone">,
): string[] {
  return header(incarnation, { paint, format: timeFormat(timeZone) });
}

function header(
  { pod, firstTime, entryCount, truncated }: Incarnation,
  { paint, format }: Pick<Style, "paint" | "format">,
): string[] {
  const name = paint.strong(printable(`${pod.namespace}/${pod.name}`));
  const time = `${format.date(firstTime)} ${format.time(firstTime)}`;
  const line = (since: string): string => `${name}  ${paint.faint(`uid ${printable(pod.uid)}, ${since} ${time}`)}`;
  if (truncated === undefined) return [line("first seen")];
  const what = entryCount === 0 ? "any entry of it" : "its first entries";
  const missing = `the journal does not have ${what}: it keeps the newest of the node and of each pod`;
  return [line(entryCount === 0 ? "created" : "oldest entry"), paint.caution(missing)];
}

function subjectLines(subject: Subject, style: Style): string[] {
  const { last, after, causes, next } = subject;
  const title = subject.container === undefined ? "the pod" : `container ${printable(subject.container)}`;
  return [
    style.paint.strong(title),
    ...row("last", stepText(last), last.time, style, paintOf(last, style.paint)),
    ...(after === undefined ? [] : row("after", stepText(after), after.time, style)),
    ...causes.flatMap((cause) => row("because", causeText(cause), cause.evidence?.time, style)),
    ...(next === undefined ? [] : nextLines(next, style)),
  ];
}

function nextLines(next: Step, style: Style): string[] {
  const leftMs = (next.until ?? style.now) - style.now;
  const when = leftMs > 0 ? `in ${formatDuration(leftMs)}` : `due for ${formatDuration(-leftMs)}`;
  return row("next", `${printable(next.message)} (${when})`, next.until, style, style.paint.caution);
}

/** Label, text wrapped in its column, and the time at the right edge of the first line. */
function row(
  label: string,
  text: string,
  time: number | undefined,
  style: Style,
  paint: (text: string) => string = (plain) => plain,
): string[] {
  const textWidth = style.width - labelWidth - timeWidth - 4;
  return wrap(text, textWidth).map((part, index) => {
    const start = `  ${style.paint.faint((index === 0 ? label : "").padEnd(labelWidth))}${paint(part)}`;
    if (index > 0 || time === undefined) return start;
    return `${start}${" ".repeat(textWidth - part.length + 2)}${style.paint.faint(style.format.time(time))}`;
  });
}

function timelineRow(
  { step, sinceStartMs }: TimelineLine,
  containerWidth: number,
  whatWidth: number,
  style: Style,
): string[] {
  const { paint, format, width } = style;
  const since = `+${formatDuration(sinceStartMs)}`.padStart(11);
  const start = `${format.time(step.time)} ${since}  `;
  const columns = `${column(step.container ?? "", containerWidth)}${column(step.what, whatWidth)}`;
  const indent = " ".repeat(start.length + columns.length);
  const textWidth = Math.max(24, width - indent.length);
  const color = paintOf(step, paint);
  const texts = wrap(stepText(step), textWidth).map(
    (text, index) => `${index === 0 ? `${paint.faint(start)}${columns}` : indent}${color(text)}`,
  );
  for (const cause of step.causes) {
    const parts = wrap(`because ${causeText(cause)}`, textWidth - 2);
    texts.push(...parts.map((text) => `${indent}${paint.faint(`  ${text}`)}`));
  }
  return texts;
}

function columnWidth(texts: readonly string[], maximum: number): number {
  const longest = Math.min(maximum, Math.max(0, ...texts.map((text) => printable(text).length)));
  return longest === 0 ? 0 : longest + 2;
}

function column(text: string, width: number): string {
  const clean = printable(text);
  if (width === 0) return "";
  return (clean.length <= width - 2 ? clean : `${clean.slice(0, width - 3)}…`).padEnd(width);
}

/** A step with its count and outcome, in one printable line. */
export function stepText(step: Step): string {
  const repeated = step.repeated;
  const count =
    repeated === undefined ? "" : ` (${repeated.count} times in ${formatDuration(repeated.lastTime - step.time)})`;
  const over = termOf(step.what).why === "remark over" ? "no longer: " : "";
  return `${over}${printable(step.message)}${count}${endingText(step)}`;
}

function endingText({ ending, kind, message }: Step): string {
  if (ending === undefined || kind === "outcome") return "";
  const took = ending.durationMs === undefined ? "" : formatDuration(ending.durationMs);
  const said = saidBy(ending, message);
  switch (ending.result) {
    case "done":
      return ` → done in ${took}${said}`;
    case "failed":
      return ` → failed after ${took}${said}`;
    case "unknown":
      return ` → outcome unknown after ${took}${said}`;
    case "running":
      return " → still running";
    case "interrupted":
      return " → interrupted: podwright stopped";
  }
}

/** What the outcome adds to the action's message. */
function saidBy({ message }: Ending, action: string): string {
  return message === undefined || message === "" || message === `${action}: done` ? "" : `: ${printable(message)}`;
}

/** A cause with its evidence, printable. */
export function causeText({ message, evidence }: CauseLink): string {
  const said = printable(message);
  if (evidence === undefined) return said;
  const proof = printable(evidence.message);
  return proof === said || proof.includes(said) || said.includes(proof) ? said : `${said} (${proof})`;
}

function paintOf(step: Step, paint: Paint): (text: string) => string {
  switch (step.ending?.result) {
    case "failed":
      return paint.bad;
    case "unknown":
    case "interrupted":
      return paint.caution;
    case "done":
      return paint.good;
    case "running":
    case undefined:
      return (text) => text;
  }
}
