import * as z from "zod";
import { parseQuantity } from "../resources/quantity.ts";
import type { ThresholdValue } from "../resources/threshold-value.ts";
import { signals, type Threshold } from "./thresholds.ts";

/** The settings that decide which pods are evicted. */
export interface EvictionTerms {
  /** Without containerfs. */
  readonly thresholds: readonly Threshold[];
  /** Whether storage limits of pods are enforced (localStorageCapacityIsolation). */
  readonly enforcesStorageLimits: boolean;
  /** Whether memory.available is the kernel's MemAvailable instead of the capacity minus the working set. */
  readonly countsMemAvailable: boolean;
  /** systemReserved and kubeReserved together: what the memory for all pods lacks. Undefined: not recorded. */
  readonly reservedMemoryBytes: number | undefined;
}

const Value = z.union([z.object({ amount: z.string() }), z.object({ part: z.number() })]);
const Terms = z.object({
  thresholds: z.array(
    z.object({ signal: z.enum(signals), value: Value, graceMs: z.number(), minReclaim: Value.optional() }),
  ),
  enforcesStorageLimits: z.boolean(),
  countsMemAvailable: z.boolean(),
  reservedMemoryBytes: z.number().optional(),
});
/** The terms of one start, and of later ones that evict other pods. */
const Content = Terms.extend({ later: z.array(Terms).optional() });

/** Whether they evict any pod at all. */
export function evictsPods({ thresholds, enforcesStorageLimits }: EvictionTerms): boolean {
  return thresholds.length > 0 || enforcesStorageLimits;
}

/**
 * Whether these terms evict no pod that the others would spare, whatever the node is short of. False also when that
 * depends on its capacity. Pure.
 */
export function isWithin(terms: EvictionTerms, others: EvictionTerms): boolean {
  if (terms.enforcesStorageLimits && !others.enforcesStorageLimits) return false;
  return terms.thresholds.every((threshold) => {
    if (!isSameFigure(threshold, terms, others)) return false;
    return others.thresholds.some((other) => other.signal === threshold.signal && isMilder(threshold, other));
  });
}

/** Whether both see less of a signal at the same time, or these later. */
function isSameFigure({ signal }: Threshold, terms: EvictionTerms, others: EvictionTerms): boolean {
  if (signal === "memory.available") return terms.countsMemAvailable === others.countsMemAvailable;
  if (signal !== "allocatableMemory.available") return true;
  const [own, other] = [terms.reservedMemoryBytes, others.reservedMemoryBytes];
  return own !== undefined && other !== undefined && own <= other;
}

function isMilder(one: Threshold, other: Threshold): boolean {
  if (one.graceMs < other.graceMs || !isAtMost(one.value, other.value)) return false;
  if (one.minReclaim === undefined) return true;
  return other.minReclaim !== undefined && isAtMost(one.minReclaim, other.minReclaim);
}

function isAtMost(one: ThresholdValue, other: ThresholdValue): boolean {
  if ("part" in one) return "part" in other && one.part <= other.part;
  return "amount" in other && one.amount.compare(other.amount) <= 0;
}

/** As JSON. @param starts the terms of one start or several, at least one */
export function encodeStarts([first, ...later]: readonly [EvictionTerms, ...EvictionTerms[]]): string {
  const content = { ...encodeTerms(first), ...(later.length > 0 && { later: later.map(encodeTerms) }) };
  return JSON.stringify(content satisfies z.input<typeof Content>);
}

/** @throws for text of anything else */
export function decodeStarts(text: string): [EvictionTerms, ...EvictionTerms[]] {
  const { later = [], ...first } = Content.parse(JSON.parse(text));
  return [decodeTerms(first), ...later.map(decodeTerms)];
}

function encodeTerms({
  thresholds,
  enforcesStorageLimits,
  countsMemAvailable,
  reservedMemoryBytes,
}: EvictionTerms): z.input<typeof Terms> {
  const written = thresholds.map(({ signal, value, graceMs, minReclaim }) => {
    return { signal, value: encodeValue(value), graceMs, minReclaim: minReclaim && encodeValue(minReclaim) };
  });
  return { thresholds: written, enforcesStorageLimits, countsMemAvailable, reservedMemoryBytes };
}

function decodeTerms({ thresholds, reservedMemoryBytes, ...others }: z.infer<typeof Terms>): EvictionTerms {
  const read = thresholds.map(({ signal, value, graceMs, minReclaim }): Threshold => {
    return { signal, value: decodeValue(value), graceMs, minReclaim: minReclaim && decodeValue(minReclaim) };
  });
  return { thresholds: read, reservedMemoryBytes, ...others };
}

function encodeValue(value: ThresholdValue): z.input<typeof Value> {
  return "part" in value ? value : { amount: value.amount.toString() };
}

function decodeValue(value: z.infer<typeof Value>): ThresholdValue {
  return "part" in value ? value : { amount: parseQuantity(value.amount) };
}
