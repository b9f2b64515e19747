const unitNanoseconds: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

const unit = "(?:ns|us|µs|μs|ms|s|m|h)";
const durationPattern = new RegExp(`^[+-]?(?:0|(?:(?:\\d+\\.?\\d*|\\.\\d+)${unit})+)$`, "u");
const partPattern = new RegExp(`(\\d+\\.?\\d*|\\.\\d+)(${unit})`, "gu");
/** A Go duration is an int64 of nanoseconds. */
const maxNanoseconds = 2 ** 63;

/**
 * A duration as Go's time.ParseDuration reads it (`1h30m`, `1.5s`, `-300ms`, `0`), in milliseconds; undefined for
 * anything else.
 */
export function parseGoDuration(text: string): number | undefined {
  if (!durationPattern.test(text)) return undefined;
  let nanoseconds = 0;
  for (const [, amount, name = ""] of text.matchAll(partPattern)) {
    nanoseconds += Number(amount) * (unitNanoseconds[name] ?? 0);
  }
  if (nanoseconds >= maxNanoseconds) return undefined;
  return (text.startsWith("-") ? -nanoseconds : nanoseconds) / 1e6;
}

/** What to say of a value that {@link parseGoDuration} can't read, and how it may have been meant. */
export function durationProblem(value: unknown): string {
  const text = typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)$/u.test(text)) return `needs a unit: write ${text}s`;
  const days = /^\d{1,4}(?=d$)/u.exec(text)?.[0];
  if (days !== undefined) return `cannot have days: write ${Number(days) * 24}h`;
  return 'expected a duration such as "10s" or "1h30m"';
}

/** The duration as Go's Duration.String writes it: `1h0m0s`, `1m30s`, `100ms`, `0s`. */
export function formatGoDuration(durationMs: number): string {
  const sign = durationMs < 0 ? "-" : "";
  const ms = Math.abs(durationMs);
  if (ms === 0) return "0s";
  if (ms < 0.001) return `${sign}${Math.round(ms * 1e6)}ns`;
  if (ms < 1) return `${sign}${trimmed(ms * 1e3, 3)}µs`;
  if (ms < 1000) return `${sign}${trimmed(ms, 6)}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = `${trimmed((ms % 60_000) / 1000, 9)}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

function trimmed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.?0+$/u, "");
}
