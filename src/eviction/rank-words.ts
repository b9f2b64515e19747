import { fullName } from "../api/full-name.ts";
import { plainAmount } from "./plain-amounts.ts";
import type { Ranked } from "./rank.ts";
import { resourceOf, type Signal, type StarvedResource } from "./thresholds.ts";

/** How many of the next pods are named. */
const namedNext = 2;

/**
 * What decides the pod's rank: `uses 512Mi of memory, 256Mi more than it requests, priority 0`, or `used 512Mi of memory
 * 40 s ago, …` if that could not be measured now. Pure.
 */
export function placeText(ranked: Ranked, signal: Signal): string {
  const { amount, isPart, request, exceeds, priority, isCritical, usage, measuredAgoMs } = ranked;
  const resource = resourceOf(signal);
  const text = (value: number): string => plainAmount(resource, BigInt(value));
  const [uses, ago] =
    measuredAgoMs === undefined ? ["uses", ""] : ["used", ` ${Math.round(measuredAgoMs / 1000)} s ago`];
  const least = isPart ? "at least " : "";
  const used = amount === undefined ? "usage not known" : `${uses} ${least}${text(amount)}${nounOf(resource, amount)}`;
  const requested = requestText(
    resource,
    amount === undefined
      ? `requests ${text(request)}`
      : `${text(Math.abs(amount - request))} ${exceeds ? "more" : "less"} than it requests`,
    request > 0,
  );
  const swapped =
    resource === "memory" && (usage?.swapBytes ?? 0) > 0 ? ` and ${text(usage?.swapBytes ?? 0)} of swap` : "";
  const critical = isCritical ? ", critical: never evicted" : "";
  return `${used}${swapped}${amount === undefined ? "" : ago}${requested}, priority ${priority}${critical}`;
}

/**
 * Why this pod is evicted: its rank, and which pods would be next. Pure.
 * @param running those of the ranked pods that have not ended since they were ranked
 */
export function victimText(
  { ranked, running }: { readonly ranked: readonly Ranked[]; readonly running: ReadonlySet<Ranked> },
  victim: Ranked,
  signal: Signal,
): string {
  const place = ranked.indexOf(victim);
  // Critical pods come last: only those that ended are skipped.
  const passed = place === 0 ? "" : ` (${place === 1 ? "the one" : `the ${place}`} before it ended meanwhile)`;
  const next = ranked
    .slice(place + 1)
    .filter((other) => !other.isCritical && running.has(other))
    .slice(0, namedNext)
    .map((other) => `${fullName(other.pod.metadata)} (${placeText(other, signal)})`);
  const others = next.length === 0 ? "no other pod can be evicted" : `next: ${next.join(", ")}`;
  const rank = `ranked ${place + 1} of ${ranked.length}${passed}`;
  return `evicted for ${signal}, ${rank}: ${placeText(victim, signal)}; ${others}`;
}

function nounOf(resource: StarvedResource, amount: number): string {
  if (resource === "pids") return amount === 1 ? " process" : " processes";
  if (resource === "inodes") return amount === 1 ? " inode" : " inodes";
  return ` of ${resource}`;
}

function requestText(resource: StarvedResource, request: string, hasRequest: boolean): string {
  if (resource === "pids" || resource === "inodes") return "";
  if (!hasRequest) return ", requests none";
  return `, ${request}`;
}
