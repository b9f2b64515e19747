import { milliQuantity, parseQuantity, type Quantity, quantityOf } from "../resources/quantity.ts";
import type { NodeFacts } from "./node-facts.ts";

/** What of the machine pods may have. */
export interface CapacitySettings {
  readonly maxPods: number;
  /** 0: no limit by processors. */
  readonly podsPerCore: number;
  /** systemReserved and kubeReserved: quantities by resource. */
  readonly reserved: readonly Readonly<Record<string, string>>[];
  /** Hard eviction threshold of memory.available: a quantity or a percentage; empty: none. */
  readonly evictionMemory: string;
}

type Resources = Readonly<Record<string, string>>;

/** What the machine has, as resources of a Node. Pure. */
export function nodeCapacity(facts: NodeFacts, { maxPods, podsPerCore }: CapacitySettings): Resources {
  const pods = podsPerCore > 0 ? Math.min(facts.processors * podsPerCore, maxPods) : maxPods;
  return {
    cpu: String(facts.processors),
    memory: quantityOf(facts.memoryBytes, "BinarySI").toString(),
    pods: String(pods),
    ...Object.fromEntries(
      facts.hugePages.map(({ sizeBytes, count }) => {
        const name = `hugepages-${quantityOf(sizeBytes, "BinarySI").toString()}`;
        return [name, quantityOf(sizeBytes * count, "BinarySI").toString()];
      }),
    ),
  };
}

/** Capacity less what is reserved, and less the memory at which pods are evicted; huge pages are no memory to pods. Pure. */
export function nodeAllocatable(facts: NodeFacts, capacity: Resources, settings: CapacitySettings): Resources {
  const taken = (resource: string): bigint =>
    settings.reserved.reduce((sum, list) => sum + (list[resource] ? parseQuantity(list[resource]).nanos : 0n), 0n);
  const hugePages = facts.hugePages.reduce((sum, { sizeBytes, count }) => sum + sizeBytes * count, 0n);
  const memory = parseQuantity(capacity["memory"] ?? "0").nanos;
  const unavailable = threshold(settings.evictionMemory, facts.memoryBytes) + hugePages;
  return {
    ...capacity,
    cpu: milliQuantity(atLeastZero(parseQuantity(capacity["cpu"] ?? "0").nanos - taken("cpu")) / 1_000_000n).toString(),
    memory: bytes(atLeastZero(memory - taken("memory") - unavailable * 1_000_000_000n)).toString(),
  };
}

function bytes(nanos: bigint): Quantity {
  return quantityOf(nanos / 1_000_000_000n, "BinarySI");
}

function atLeastZero(value: bigint): bigint {
  return value < 0n ? 0n : value;
}

function threshold(text: string, of: bigint): bigint {
  const percent = /^([\d.]+)%$/u.exec(text)?.[1];
  if (percent !== undefined) return BigInt(Math.round((Number(of) * Number(percent)) / 100));
  return text === "" ? 0n : parseQuantity(text).value();
}
