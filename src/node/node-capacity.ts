import { nodeAllocatable } from "../resources/node-allocatable.ts";
import { parseQuantity, quantityOf } from "../resources/quantity.ts";
import type { NodeFacts } from "./node-facts.ts";

/** What of the machine pods may have. */
export interface CapacitySettings {
  readonly maxPods: number;
  /** 0: no limit by processors. */
  readonly podsPerCore: number;
  /** systemReserved and kubeReserved: quantities by resource. */
  readonly reserved: readonly Readonly<Record<string, string>>[];
  /** reservedSystemCPUs: counts in place of the processors of the lists; empty: none. */
  readonly reservedSystemCpus: string;
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

/** Capacity less what is reserved, and less the memory at which pods are evicted. Pure. */
export function allocatable(facts: NodeFacts, capacity: Resources, settings: CapacitySettings): Resources {
  const hugePages = new Map(facts.hugePages.map(({ sizeBytes, count }) => [sizeBytes, sizeBytes * count]));
  const memoryBytes = facts.memoryBytes - threshold(settings.evictionMemory, facts.memoryBytes);
  const milliCpu = BigInt(facts.processors) * 1000n;
  const { reserved: lists, reservedSystemCpus: systemCpus } = settings;
  return {
    ...capacity,
    ...nodeAllocatable({ milliCpu, memoryBytes, hugePages }, { lists, systemCpus, enforced: false }),
  };
}

function threshold(text: string, of: bigint): bigint {
  const percent = /^([\d.]+)%$/u.exec(text)?.[1];
  if (percent !== undefined) return BigInt(Math.round((Number(of) * Number(percent)) / 100));
  return text === "" ? 0n : parseQuantity(text).value();
}
