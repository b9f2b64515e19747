import type { Blame } from "./blame.ts";
import type { BlamedPhase } from "./phase.ts";
import { renderHeader } from "./render.ts";
import { formatDuration, type Paint, plainPaint, printable } from "./text.ts";

const offsetWidth = 12;
const durationWidth = 10;
const longestContainerColumn = 24;

const outcomes = {
  ready: "ready for the first time after",
  ended: "never ready; ended or stopped after",
  starting: "not ready yet, so far",
} as const satisfies Record<Blame["outcome"], string>;

/**
 * `podwright blame` as text, with one newline at the end. `│` marks the critical chain; parallel work is faint.
 * @param timeZone such as `Europe/Berlin`; default: the system's
 */
export function renderBlame(
  { incarnation, outcome, totalMs, phases }: Blame,
  { paint = plainPaint, timeZone }: { readonly paint?: Paint; readonly timeZone?: string } = {},
): string {
  const names = phases.map(({ container = "" }) => printable(container).length);
  const nameWidth = Math.min(longestContainerColumn, Math.max(0, ...names));
  const lines = [
    ...renderHeader(incarnation, { paint, ...(timeZone !== undefined && { timeZone }) }),
    incarnation.truncated
      ? "its first start is not among them; what they have of later ones:"
      : `${outcomes[outcome]} ${paint.strong(formatDuration(totalMs))}`,
    "",
    ...phases.map((phase) => phaseLine(phase, nameWidth, paint)),
  ];
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

function phaseLine(phase: BlamedPhase, nameWidth: number, paint: Paint): string {
  const offset = `+${formatDuration(phase.offsetMs)}`.padStart(offsetWidth);
  const duration = formatDuration(phase.durationMs).padStart(durationWidth);
  const name = printable(phase.container ?? "");
  const column = (name.length <= nameWidth ? name : `${name.slice(0, nameWidth - 1)}…`).padEnd(nameWidth);
  const text = `${nameWidth === 0 ? "" : `${column}  `}${printable(phase.label)}${notes(phase)}`;
  if (!phase.critical) return paint.faint(`  ${offset}  ${duration}  ${text}`);
  const marked = phase.longest ? `${paint.caution(`${duration}  ${text}`)}  ← longest` : `${duration}  ${text}`;
  return `│ ${paint.faint(offset)}  ${marked}`;
}

function notes({ queuedMs, result }: BlamedPhase): string {
  const parts = [
    ...(queuedMs === undefined ? [] : [`queued ${formatDuration(queuedMs)}`]),
    ...(result === "done" ? [] : [resultText[result]]),
  ];
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
}

const resultText = {
  failed: "failed",
  unknown: "outcome unknown",
  running: "still running",
  interrupted: "podwright stopped before it ended",
} as const;
