/**
 * Characters that control a terminal or hide text: controls (C0, DEL, C1), line separators and the marks that change
 * the direction of text. Log values may come from a pod.
 */
const unsafe = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A JSON log line for people: local time of day, level, message, then the fields as `name=value`. */
export function humanLine(jsonLine: string): string {
  const { time, level, msg, ...fields } = parse(jsonLine);
  const pairs = Object.entries(fields).map(([name, value]) => ` ${printable(name)}=${fieldText(value)}`);
  return `${timeOfDay(time)} ${printable(String(level)).toUpperCase().padEnd(5)} ${printable(String(msg))}${pairs.join("")}\n`;
}

function parse(jsonLine: string): Record<string, unknown> {
  const value: unknown = JSON.parse(jsonLine);
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function timeOfDay(time: unknown): string {
  const date = new Date(String(time));
  const two = (number: number): string => String(number).padStart(2, "0");
  const milliseconds = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${milliseconds}`;
}

/** Simple words as they are, everything else as JSON. */
function fieldText(value: unknown): string {
  if (typeof value === "string" && /^[\p{L}\p{N}_./:@+-]+$/u.test(value)) return value;
  return printable(JSON.stringify(value) ?? "");
}

function printable(text: string): string {
  return text.replaceAll(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
