import { parseCpuList } from "./cpu-list.ts";
import { parseList } from "./pod-totals.ts";
import { milliQuantity, quantityOf, zeroQuantity } from "./quantity.ts";
import { type ThresholdValue, thresholdAmount } from "./threshold-value.ts";

/** The machine's capacity, or pods' part of it. */
export interface NodeCapacity {
  readonly milliCpu: bigint;
  readonly memoryBytes: bigint;
  /** The kernel's maximum of processes and threads; undefined: unknown. */
  readonly pids?: bigint | undefined;
  /** Bytes of huge pages by page size in bytes. */
  readonly hugePages?: ReadonlyMap<bigint, bigint>;
  /** Capacity of the pods' file system; undefined: local storage is not accounted for. */
  readonly ephemeralStorageBytes?: bigint | undefined;
}

/** Resources below hard eviction thresholds: not allocatable, because pods would be evicted for them. */
export interface EvictionReserve {
  readonly memory?: ThresholdValue | undefined;
  readonly ephemeralStorage?: ThresholdValue | undefined;
}

/** The reserved part of the capacity. */
export interface Reservations {
  /** systemReserved and kubeReserved. */
  readonly lists: readonly Readonly<Record<string, string>>[];
  /** reservedSystemCPUs, e.g. `0-1,4`: their number replaces the lists' CPU. */
  readonly systemCpus: string;
  /** Whether pods are limited to the rest (`pods` in enforceNodeAllocatable). */
  readonly enforced: boolean;
  readonly eviction?: EvictionReserve | undefined;
}

/** Node allocatable by resource name: the limit of all pods' requests. Memory excludes huge pages. */
export function nodeAllocatable(capacity: NodeCapacity, reserved: Reservations): Record<string, string> {
  const { milliCpu, memoryBytes, ephemeralStorageBytes } = remaining(capacity, reserved);
  const { memory, ephemeralStorage } = reserved.eviction ?? {};
  const forPods = memoryBytes - evictedBytes(memory, capacity.memoryBytes);
  const pages = [...(capacity.hugePages ?? [])].filter(([, bytes]) => bytes > 0n);
  const inPages = pages.reduce((sum, [, bytes]) => sum + bytes, 0n);
  return {
    cpu: milliQuantity(milliCpu).toString(),
    memory: quantityOf(atLeastZero(forPods - inPages), "BinarySI").toString(),
    ...(ephemeralStorageBytes !== undefined && {
      "ephemeral-storage": quantityOf(
        atLeastZero(ephemeralStorageBytes - evictedBytes(ephemeralStorage, capacity.ephemeralStorageBytes ?? 0n)),
        "BinarySI",
      ).toString(),
    }),
    ...Object.fromEntries(
      pages.map(([size, bytes]) => [
        `hugepages-${quantityOf(size, "BinarySI").toString()}`,
        quantityOf(bytes, "BinarySI").toString(),
      ]),
    ),
  };
}

/** The limits of all pods together: node allocatable without eviction thresholds, or the machine's capacity. */
export function capacityForPods(capacity: NodeCapacity, reserved: Reservations): NodeCapacity {
  return reserved.enforced ? { ...capacity, ...remaining(capacity, reserved) } : capacity;
}

function remaining(
  { milliCpu, memoryBytes, pids, ephemeralStorageBytes: storage }: NodeCapacity,
  reserved: Reservations,
): Pick<NodeCapacity, "milliCpu" | "memoryBytes" | "pids" | "ephemeralStorageBytes"> {
  const kept = reservedAmounts(reserved);
  return {
    milliCpu: atLeastZero(milliCpu - kept.milliCpu),
    memoryBytes: atLeastZero(memoryBytes - kept.memoryBytes),
    ephemeralStorageBytes: storage === undefined ? undefined : atLeastZero(storage - kept.ephemeralStorageBytes),
    pids: pids === undefined ? undefined : atLeastZero(pids - kept.pids),
  };
}

/** What the memory for all pods together lacks of the machine's, if they are held to it. */
export function reservedMemoryBytes({ lists }: Pick<Reservations, "lists">): bigint {
  return wholes(lists, "memory");
}

function milliSum(lists: Reservations["lists"], name: string): bigint {
  return lists.reduce((total, list) => total + (parseList(list).get(name) ?? zeroQuantity).milliValue(), 0n);
}

function wholes(lists: Reservations["lists"], name: string): bigint {
  return (milliSum(lists, name) + 999n) / 1000n;
}

/** The reserved amounts, without eviction thresholds. */
function reservedAmounts({ lists, systemCpus }: Reservations) {
  return {
    milliCpu: systemCpus === "" ? milliSum(lists, "cpu") : BigInt(parseCpuList(systemCpus).size) * 1000n,
    memoryBytes: reservedMemoryBytes({ lists }),
    ephemeralStorageBytes: wholes(lists, "ephemeral-storage"),
    pids: wholes(lists, "pid"),
  };
}

function evictedBytes(value: ThresholdValue | undefined, capacityBytes: bigint): bigint {
  return value === undefined ? 0n : thresholdAmount(value, capacityBytes);
}

/** A resource of which more is reserved than there is. */
export interface ReservationProblem {
  /** In upstream's words. */
  readonly message: string;
  /** What reserves it. */
  readonly fields: string;
}

const reservingFields = {
  cpu: "cpu in kubeReserved and systemReserved, or reservedSystemCPUs",
  memory: "memory in kubeReserved and systemReserved, or memory.available in evictionHard",
  "ephemeral-storage": "ephemeral-storage in kubeReserved and systemReserved, or nodefs.available in evictionHard",
} as const;

/**
 * Reservations that exceed the capacity, in upstream's words.
 * @param capacity of the whole machine
 */
export function reservationProblems(capacity: NodeCapacity, reserved: Reservations): ReservationProblem[] {
  const kept = reservedAmounts(reserved);
  const { memory, ephemeralStorage } = reserved.eviction ?? {};
  const { milliCpu, memoryBytes, ephemeralStorageBytes: storage } = capacity;
  const problem = (
    name: keyof typeof reservingFields,
    amount: bigint,
    of: bigint,
    show: (amount: bigint) => string,
  ): ReservationProblem[] => {
    if (amount <= of) return [];
    const reservation = `a reservation of ${show(amount)} but capacity of ${show(of)}`;
    const message = `Resource "${name}" has ${reservation}. Expected capacity >= reservation.`;
    return [{ message, fields: reservingFields[name] }];
  };
  const bytesProblem = (
    name: keyof typeof reservingFields,
    listed: bigint,
    value: ThresholdValue | undefined,
    of: bigint,
  ): ReservationProblem[] =>
    problem(name, listed + evictedBytes(value, of), of, (bytes) => quantityOf(bytes, "BinarySI").toString());
  return [
    ...problem("cpu", kept.milliCpu, milliCpu, (amount) => milliQuantity(amount).toString()),
    ...bytesProblem("memory", kept.memoryBytes, memory, memoryBytes),
    ...(storage === undefined
      ? []
      : bytesProblem("ephemeral-storage", kept.ephemeralStorageBytes, ephemeralStorage, storage)),
  ];
}

function atLeastZero(amount: bigint): bigint {
  return amount < 0n ? 0n : amount;
}
