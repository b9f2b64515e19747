/** Numbers and times as people read them. */

/** `7 ms`, `2.3 s`, `2 min 5 s`, `3 h 20 min`, `5 d 2 h`. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1000) return `${whole} ms`;
  if (whole < 59_950) return `${(whole / 1000).toFixed(1)} s`;
  const seconds = Math.round(whole / 1000);
  if (seconds < 3600) return twoUnits(seconds, 60, "min", 1, "s");
  if (seconds < 86_400) return twoUnits(seconds, 3600, "h", 60, "min");
  return twoUnits(seconds, 86_400, "d", 3600, "h");
}

/** As {@link duration}, in whole seconds: for something in progress. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1000);
}

/** Of one unit, for columns: `42 s`, `5 min`, `3 h`, `12 d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 100) return `${seconds} s`;
  if (seconds < 100 * 60) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

function twoUnits(seconds: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeName}${rest === 0 ? "" : ` ${rest} ${smallName}`}`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Three digits: `512 B`, `1.25 GiB`. */
export function bytes(amount: number): string {
  let value = Math.max(0, amount);
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${threeDigits(value, unit === 0)} ${units[unit]}`;
}

/** Processor cores: `1.24`, `0.35`, `0.004`. */
export function cores(amount: number): string {
  if (amount >= 0.0995) return amount.toFixed(2);
  return amount.toFixed(3);
}

function threeDigits(value: number, whole: boolean): string {
  if (whole || value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

export function percent(part: number, whole: number): string {
  const share = (100 * part) / whole;
  return `${share > 0 && share < 9.95 ? share.toFixed(1) : share.toFixed(0)} %`;
}

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const dayAndClock = new Intl.DateTimeFormat("sv-SE", {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** `14:02:11` in the reader's time zone. */
export function time(ms: number): string {
  return clock.format(ms);
}

/** `2026-11-20 14:02:11` */
export function dateTime(ms: number): string {
  return dayAndClock.format(ms);
}

/** `1 pod`, `2 pods` */
export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
