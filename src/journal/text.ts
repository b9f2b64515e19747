/** Colours and weights of text, for a terminal or none. Each returns the text with its marks. */
export interface Paint {
  readonly strong: (text: string) => string;
  readonly faint: (text: string) => string;
  readonly good: (text: string) => string;
  readonly caution: (text: string) => string;
  readonly bad: (text: string) => string;
}

const same = (text: string): string => text;

/** No colours: for files, pipes and tests. */
export const plainPaint: Paint = { strong: same, faint: same, good: same, caution: same, bad: same };

/** Control characters, and those that reorder text: parts of the output come from pods. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text on one line and safe for a terminal: whitespace as single spaces, other control characters as escapes. */
export function printable(text: string): string {
  return text
    .replaceAll(/[\t\r\n]+/g, " ")
    .replaceAll(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .trim();
}

/** `7 ms`, `2.3 s`, `2 min 5 s`, `3 h 20 min`, `5 d 2 h`: two units at most. */
export function formatDuration(durationMs: number): string {
  const ms = Math.max(0, Math.round(durationMs));
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return twoUnits(seconds, 60, "min", 1, "s");
  if (seconds < 86_400) return twoUnits(seconds, 3_600, "h", 60, "min");
  return twoUnits(seconds, 86_400, "d", 3_600, "h");
}

function twoUnits(seconds: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeName}${rest === 0 ? "" : ` ${rest} ${smallName}`}`;
}

/** Formats wall-clock milliseconds: `date` as 2026-11-20, `time` as 14:02:11.300. */
export interface TimeFormat {
  readonly date: (ms: number) => string;
  readonly time: (ms: number) => string;
}

/** Formats in the given time zone, e.g. `UTC` or `Europe/Berlin`; default: the system's. */
export function timeFormat(timeZone: string | undefined): TimeFormat {
  const zone = timeZone === undefined ? {} : { timeZone };
  // Sweden's conventions are those of ISO 8601.
  const date = new Intl.DateTimeFormat("sv-SE", { ...zone, year: "numeric", month: "2-digit", day: "2-digit" });
  const time = new Intl.DateTimeFormat("en-GB", {
    ...zone,
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hourCycle: "h23",
  });
  return { date: (ms) => date.format(ms), time: (ms) => time.format(ms) };
}

/** Breaks the text into lines of at most `width` characters (at least 1), preferably at spaces. Never empty. */
export function wrap(text: string, width: number): string[] {
  // With less, as on the narrowest terminals, nothing would ever be taken off the text.
  if (width < 1) return wrap(text, 1);
  const lines: string[] = [];
  let rest = text;
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    const end = space > 0 ? space : width;
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  lines.push(rest);
  return lines;
}
