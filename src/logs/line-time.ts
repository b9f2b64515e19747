/** A time to the second, its fraction, and its zone. */
const timeParts = /^(.{19})(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)$/;
const fractionDigits = 9;

/**
 * The time of a line as clients get it: RFC 3339 with nine fractional digits, as in Go's RFC3339NanoFixed, where UTC is
 * `Z`. containerd omits trailing zeros, and conmon writes UTC as `+00:00`. Another format is returned unchanged.
 */
export function fixedTime(time: string): string {
  const [, seconds, fraction = "", zone] = timeParts.exec(time) ?? [];
  if (seconds === undefined || zone === undefined) return time;
  const nanoseconds = fraction.slice(0, fractionDigits).padEnd(fractionDigits, "0");
  return `${seconds}.${nanoseconds}${/^[+-]00:00$/.test(zone) ? "Z" : zone}`;
}
