import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "../../ports/clock.ts";
import { openCLibrary } from "./c-library.ts";
import { programPages } from "./program-pages.ts";

/** The memory of this process's JavaScript objects, and how busy the process is. */
export interface Heap {
  /** V8's heap in bytes, garbage included. */
  heldBytes(): number;
  /** CPU time since the process began. */
  cpuMs(): number;
  /** Gives back what can be; takes some ten milliseconds, in which nothing else is done. */
  shrink(): void;
}

const lookMs = 15_000;
/** Of one core. A node that probes hundreds of times a second is never calm, and collects often enough by itself. */
const calmShare = 0.1;
/** Less than this over what was left the last time is not worth it: the young generation alone comes and goes by it. */
const worthBytes = 8 << 20;
/** The same of a large heap, which takes longer to collect. */
const worthShare = 1 / 8;
/** After that much work, much of what was live at the last collection may be garbage. */
const worthCpuMs = 2000;
/** And after so many times what the last collection took. */
const worthCosts = 20;

/**
 * Lets the heap shrink whenever the process has become calm after it worked, until the signal aborts.
 *
 * V8 collects when something is allocated, and a node at rest allocates next to nothing: what a burst of pods leaves, 20 to
 * 30 MiB, would stay for hours.
 */
export async function keepLean(heap: Heap, clock: Clock, signal: AbortSignal): Promise<void> {
  let lean = { bytes: 0, cpuMs: 0, costMs: 0 };
  for (let cpuMs = heap.cpuMs(); ; cpuMs = heap.cpuMs()) {
    await clock.sleep("next check of the heap", lookMs, signal).catch(() => {});
    if (signal.aborted) return;
    const nowMs = heap.cpuMs();
    if (nowMs - cpuMs > lookMs * calmShare) continue;
    const hasGrown = heap.heldBytes() - lean.bytes >= Math.max(worthBytes, lean.bytes * worthShare);
    if (!hasGrown && nowMs - lean.cpuMs < Math.max(worthCpuMs, lean.costMs * worthCosts)) continue;
    heap.shrink();
    const afterMs = heap.cpuMs();
    lean = { bytes: heap.heldBytes(), cpuMs: afterMs, costMs: afterMs - nowMs };
  }
}

/**
 * V8's flags of a process that stays. What was compiled is not thrown away: the next pod would wait a tenth of a second for it. The
 * last of V8's compilers, which takes 5 MiB and saves a node no time, is left out. And the heap can be told to shrink.
 *
 * They are set once a node has loaded what it is made of, not by the launcher: V8 takes compiled code only under the flags that
 * it was compiled with, and that of Node.js' own modules, compiled when Node.js was built, would count for nothing.
 */
const flags = ["--no-flush-bytecode", "--no-turbofan", "--expose-gc"] as const;

/** The heap of this process, which from now on has the flags of one that stays. */
export function systemHeap(): Heap {
  for (const flag of flags) setFlagsFromString(flag);
  // The flag counts for contexts that are made after it.
  const gc = runInNewContext("gc") as NonNullable<typeof globalThis.gc>;
  const release = machineRelease();
  return {
    heldBytes: () => getHeapStatistics().total_heap_size,
    cpuMs: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    shrink: () => {
      gc({ type: "major", execution: "sync", flavor: "last-resort" });
      release();
    },
  };
}

/**
 * Memory outside V8's heap. The C library returns free memory at the end of its own heap by itself, and holes only on
 * request (malloc_trim(3)). Where Node.js cannot call C functions, all of it is retained.
 */
function machineRelease(): () => void {
  try {
    const library = openCLibrary();
    const trim = library("malloc_trim", ["uint64"], "int32");
    const pages = programPages(library);
    return () => {
      trim(0n);
      pages.release();
    };
  } catch {
    return () => {};
  }
}
