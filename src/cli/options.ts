import { InvalidArgumentError } from "commander";
import { isIpAddress } from "../base/formats.ts";

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of a duration in Kubernetes' notation (`90s`, `1h30m`, `500ms`); a bare number is seconds. */
export function parseDuration(text: string): number {
  if (/^\d{1,9}(\.\d{1,3})?$/.test(text)) return Number(text) * 1000;
  if (!/^(\d{1,9}(\.\d{1,3})?(ms|s|m|h|d))+$/.test(text)) {
    throw new InvalidArgumentError("Use seconds, or a duration such as 90s, 5m or 1h30m.");
  }
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    sum += Number(amount) * (unitMs[unit ?? ""] ?? 0);
  }
  return sum;
}

/** Whole seconds, rounded up, of a number or a duration. */
export function parseSeconds(text: string): number {
  const seconds = Math.ceil(parseDuration(text) / 1000);
  if (seconds > 2 ** 31) throw new InvalidArgumentError("The duration is too long.");
  return seconds;
}

/** A number of lines; `all` (or -1, as in kubectl) for all. Never undefined, which Commander would take for an empty text. */
export function parseTail(text: string): number | "all" {
  if (text === "all" || text === "-1") return "all";
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("Use a number of lines, or all.");
  return Number(text);
}

/** Addresses to listen on, comma-separated. Other texts would mean all addresses, or a host in DNS. */
export function parseAddresses(text: string): string {
  const isTaken = text.split(",").every((address) => address === "localhost" || isIpAddress(address));
  if (!isTaken) throw new InvalidArgumentError("Use IP addresses of this machine, or localhost.");
  return text;
}

/** A TCP port; 0 for any free one. */
export function parsePort(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError("Use a port, 0 to 65535.");
  return Number(text);
}

/** A CRI endpoint on this machine; a bare path becomes `unix://…`. */
export function parseEndpoint(text: string): string {
  const endpoint = text.startsWith("/") ? `unix://${text}` : text;
  if (!/^unix:\/\/\/./.test(endpoint)) {
    throw new InvalidArgumentError("Use a Unix socket, e.g. unix:///run/containerd/containerd.sock.");
  }
  return endpoint;
}
