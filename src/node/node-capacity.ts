import { nodeAllocatable } from "../resources/node-allocatable.ts";
import type { EvictionReserve } from "../resources/node-allocatable.ts";
import { quantityOf } from "../resources/quantity.ts";
import type { NodeFacts } from "./node-facts.ts";

/** The machine's resources that pods may use. */
export interface CapacitySettings {
  readonly maxPods: number;
  /** 0: unlimited per core. */
  readonly podsPerCore: number;
  /** systemReserved and kubeReserved: quantities by resource. */
  readonly reserved: readonly Readonly<Record<string, string>>[];
  /** reservedSystemCPUs: overrides the CPUs of the reservations; empty: none. */
  readonly reservedSystemCpus: string;
  readonly eviction?: EvictionReserve | undefined;
}

type Resources = Readonly<Record<string, string>>;

/** The machine's capacity as Node resources. Pure. */
export function nodeCapacity(facts: NodeFacts, { maxPods, podsPerCore }: CapacitySettings): Resources {
  const pods = podsPerCore > 0 ? Math.min(facts.processors * podsPerCore, maxPods) : maxPods;
  return {
    cpu: String(facts.processors),
    memory: quantityOf(facts.memoryBytes, "BinarySI").toString(),
    pods: String(pods),
    ...(facts.ephemeralStorageBytes !== undefined && {
      "ephemeral-storage": quantityOf(facts.ephemeralStorageBytes, "BinarySI").toString(),
    }),
    ...Object.fromEntries(
      facts.hugePages.map(({ sizeBytes, count }) => {
        const name = `hugepages-${quantityOf(sizeBytes, "BinarySI").toString()}`;
        return [name, quantityOf(sizeBytes * count, "BinarySI").toString()];
      }),
    ),
  };
}

/** Capacity minus reservations and hard eviction thresholds. Pure. */
export function allocatable(facts: NodeFacts, capacity: Resources, settings: CapacitySettings): Resources {
  const { memoryBytes, ephemeralStorageBytes } = facts;
  const hugePages = new Map(facts.hugePages.map(({ sizeBytes, count }) => [sizeBytes, sizeBytes * count]));
  const milliCpu = BigInt(facts.processors) * 1000n;
  const { reserved: lists, reservedSystemCpus: systemCpus, eviction } = settings;
  return {
    ...capacity,
    ...nodeAllocatable(
      { milliCpu, memoryBytes, hugePages, ephemeralStorageBytes },
      { lists, systemCpus, enforced: false, eviction },
    ),
  };
}
