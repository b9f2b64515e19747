/** Units in seconds, the largest first. */
const [day, hour, minute] = [86_400, 3600, 60];

function inUnits(seconds: number, [unit, letter]: Unit, [lesser, smaller]: Unit): string {
  const rest = Math.floor((seconds % unit) / lesser);
  return `${Math.floor(seconds / unit)}${letter}${rest === 0 ? "" : `${rest}${smaller}`}`;
}

type Unit = readonly [seconds: number, letter: string];

/** An age in kubectl's format: two units while the larger one is small, then one. */
export function age(since: string, nowMs: number = Date.now()): string {
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(since)) / 1000));
  if (Number.isNaN(seconds)) return "<unknown>";
  if (seconds < 2 * minute) return `${seconds}s`;
  if (seconds < 10 * minute) return inUnits(seconds, [minute, "m"], [1, "s"]);
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`;
  if (seconds < 8 * hour) return inUnits(seconds, [hour, "h"], [minute, "m"]);
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`;
  return seconds < 8 * day ? inUnits(seconds, [day, "d"], [hour, "h"]) : `${Math.floor(seconds / day)}d`;
}
