import type { CgroupSample, CpuSample, MemorySample } from "./cgroup-sample.ts";

/**
 * A pod without a cgroup of its own, by its containers. Undefined: nothing is known of it. It has no pressure, which does
 * not add up. Pure.
 */
export function sumOfContainers(samples: readonly CgroupSample[]): CgroupSample | undefined {
  const [first] = samples;
  if (first === undefined) return undefined;
  const rates = samples.flatMap(({ nanoCores }) => nanoCores ?? []);
  return {
    timeMs: Math.max(...samples.map(({ timeMs }) => timeMs)),
    cpu: cpuOf(samples.flatMap(({ cpu }) => cpu ?? [])),
    ...(rates.length > 0 && { nanoCores: total(rates) }),
    memory: memoryOf(samples.flatMap(({ memory }) => memory ?? [])),
    pids: [],
  };
}

function cpuOf(all: readonly CpuSample[]): CpuSample | undefined {
  return all.length === 0 ? undefined : { usageNanoseconds: total(all.map((each) => each.usageNanoseconds)) };
}

function memoryOf(all: readonly MemorySample[]): MemorySample | undefined {
  if (all.length === 0) return undefined;
  const sum = (of: (each: MemorySample) => number): number => total(all.map(of));
  return {
    usage: sum((each) => each.usage),
    workingSet: sum((each) => each.workingSet),
    rss: sum((each) => each.rss),
    cache: sum((each) => each.cache),
    mappedFile: sum((each) => each.mappedFile),
    activeFile: sum((each) => each.activeFile),
    inactiveFile: sum((each) => each.inactiveFile),
    swap: sum((each) => each.swap),
    pageFaults: sum((each) => each.pageFaults),
    majorPageFaults: sum((each) => each.majorPageFaults),
    limit: limitOf(all.map(({ limit }) => limit)),
    swapLimit: limitOf(all.map(({ swapLimit }) => swapLimit)),
  };
}

/** One container without a limit leaves the pod without. */
function limitOf(limits: readonly (number | undefined)[]): number | undefined {
  const known = limits.flatMap((limit) => limit ?? []);
  return known.length < limits.length ? undefined : total(known);
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
