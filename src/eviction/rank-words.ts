import { fullName } from "../api/full-name.ts";
import { amountText } from "./pressure.ts";
import type { Ranked } from "./rank.ts";
import { resourceOf, type Signal, type StarvedResource } from "./thresholds.ts";

/** How many of the next pods are named. */
const namedNext = 2;

/** What decides the pod's rank: `uses 512Mi of memory, 256Mi more than it requests, priority 0`. Pure. */
export function placeText({ amount, request, exceeds, priority, isCritical, usage }: Ranked, signal: Signal): string {
  const resource = resourceOf(signal);
  const text = (value: number): string => amountText(resource, BigInt(value));
  const used = amount === undefined ? "usage not known" : `uses ${text(amount)}${nounOf(resource)}`;
  const requested = requestText(resource, exceeds, text(Math.abs((amount ?? 0) - request)), request > 0);
  const swapped =
    resource === "memory" && (usage?.swapBytes ?? 0) > 0 ? ` and ${text(usage?.swapBytes ?? 0)} of swap` : "";
  const critical = isCritical ? ", critical: never evicted" : "";
  return `${used}${swapped}${amount === undefined ? "" : requested}, priority ${priority}${critical}`;
}

/** Why this pod is evicted: its rank, and which pods would be next. Pure. */
export function victimText(ranked: readonly Ranked[], victim: Ranked, signal: Signal): string {
  const place = ranked.indexOf(victim);
  const next = ranked
    .slice(place + 1)
    .filter(({ isCritical }) => !isCritical)
    .slice(0, namedNext)
    .map((other) => `${fullName(other.pod.metadata)} (${placeText(other, signal)})`);
  const others = next.length === 0 ? "no other pod can be evicted" : `next: ${next.join(", ")}`;
  return `evicted for ${signal}, ranked 1 of ${ranked.length}: ${placeText(victim, signal)}; ${others}`;
}

function nounOf(resource: StarvedResource): string {
  if (resource === "pids") return " processes";
  return resource === "inodes" ? " inodes" : ` of ${resource}`;
}

function requestText(resource: StarvedResource, exceeds: boolean, difference: string, hasRequest: boolean): string {
  if (resource === "pids" || resource === "inodes") return "";
  if (!hasRequest) return ", requests none";
  return exceeds ? `, ${difference} more than it requests` : `, ${difference} less than it requests`;
}
