import { parseList } from "./pod-totals.ts";
import { milliQuantity, quantityOf, zeroQuantity } from "./quantity.ts";

/** What the machine has, or what of it pods may have. */
export interface NodeCapacity {
  readonly milliCpu: bigint;
  readonly memoryBytes: bigint;
  /** Processes and threads that the kernel allows; undefined: it does not say. */
  readonly pids?: bigint | undefined;
  /** Bytes of huge pages by their size in bytes. */
  readonly hugePages?: ReadonlyMap<bigint, bigint>;
}

/** What of it is kept from pods. */
export interface Reservations {
  /** KubeletConfiguration's systemReserved and kubeReserved. */
  readonly lists: readonly Readonly<Record<string, string>>[];
  /** KubeletConfiguration's reservedSystemCPUs, e.g. `0-1,4`: so many are reserved in place of the lists' CPU. */
  readonly systemCpus: string;
  /** Whether pods are held to what is left (`pods` in enforceNodeAllocatable). */
  readonly enforced: boolean;
}

/** Node allocatable, by resource name: what all pods together may ask for. Huge pages are no memory any more. */
export function nodeAllocatable(capacity: NodeCapacity, reserved: Reservations): Record<string, string> {
  const { milliCpu, memoryBytes } = remaining(capacity, reserved);
  const pages = [...(capacity.hugePages ?? [])].filter(([, bytes]) => bytes > 0n);
  const inPages = pages.reduce((sum, [, bytes]) => sum + bytes, 0n);
  return {
    cpu: milliQuantity(milliCpu).toString(),
    memory: quantityOf(atLeastZero(memoryBytes - inPages), "BinarySI").toString(),
    ...Object.fromEntries(
      pages.map(([size, bytes]) => [
        `hugepages-${quantityOf(size, "BinarySI").toString()}`,
        quantityOf(bytes, "BinarySI").toString(),
      ]),
    ),
  };
}

/** What all pods are held to: node allocatable without regard to eviction, or all that the machine has. */
export function capacityForPods(capacity: NodeCapacity, reserved: Reservations): NodeCapacity {
  return reserved.enforced ? { ...capacity, ...remaining(capacity, reserved) } : capacity;
}

function remaining(
  { milliCpu, memoryBytes, pids }: NodeCapacity,
  { lists, systemCpus }: Reservations,
): Pick<NodeCapacity, "milliCpu" | "memoryBytes" | "pids"> {
  const sum = (name: string): bigint =>
    lists.reduce((total, list) => total + (parseList(list).get(name) ?? zeroQuantity).milliValue(), 0n);
  const wholes = (name: string): bigint => (sum(name) + 999n) / 1000n;
  const reservedMilliCpu = systemCpus === "" ? sum("cpu") : BigInt(countCpus(systemCpus)) * 1000n;
  return {
    milliCpu: atLeastZero(milliCpu - reservedMilliCpu),
    memoryBytes: atLeastZero(memoryBytes - wholes("memory")),
    pids: pids === undefined ? undefined : atLeastZero(pids - wholes("pid")),
  };
}

/** How many processors a list like `0-3,8` names. */
function countCpus(list: string): number {
  const cpus = list.split(",").flatMap((part) => {
    const [from = 0, to = from] = part.split("-").map(Number);
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
  });
  return new Set(cpus).size;
}

function atLeastZero(amount: bigint): bigint {
  return amount < 0n ? 0n : amount;
}
