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
}

const Value = z.union([z.object({ amount: z.string() }), z.object({ part: z.number() })]);
const Content = z.object({
  thresholds: z.array(
    z.object({ signal: z.enum(signals), value: Value, graceMs: z.number(), minReclaim: Value.optional() }),
  ),
  enforcesStorageLimits: z.boolean(),
  countsMemAvailable: z.boolean(),
});

/** Whether they evict any pod at all. */
export function evictsPods({ thresholds, enforcesStorageLimits }: EvictionTerms): boolean {
  return thresholds.length > 0 || enforcesStorageLimits;
}

/** As JSON: the same settings give the same text. */
export function encodeTerms({ thresholds, enforcesStorageLimits, countsMemAvailable }: EvictionTerms): string {
  const written = thresholds.map(({ signal, value, graceMs, minReclaim }) => {
    return { signal, value: encodeValue(value), graceMs, minReclaim: minReclaim && encodeValue(minReclaim) };
  });
  const content = { thresholds: written, enforcesStorageLimits, countsMemAvailable };
  return JSON.stringify(content satisfies z.input<typeof Content>);
}

/** @throws for text of anything else */
export function decodeTerms(text: string): EvictionTerms {
  const { thresholds, ...others } = Content.parse(JSON.parse(text));
  const read = thresholds.map(({ signal, value, graceMs, minReclaim }): Threshold => {
    return { signal, value: decodeValue(value), graceMs, minReclaim: minReclaim && decodeValue(minReclaim) };
  });
  return { thresholds: read, ...others };
}

function encodeValue(value: ThresholdValue): z.input<typeof Value> {
  return "part" in value ? value : { amount: value.amount.toString() };
}

function decodeValue(value: z.infer<typeof Value>): ThresholdValue {
  return "part" in value ? value : { amount: parseQuantity(value.amount) };
}
