import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "../../ports/clock.ts";
import { openCLibrary } from "./c-library.ts";
import { programPages } from "./program-pages.ts";

/** The process's JavaScript heap, and its CPU time. */
export interface Heap {
  /** What V8's heap has of the machine, in bytes. */
  heldBytes(): number;
  /** Of that, objects, garbage included. */
  usedBytes(): number;
  /** CPU time since the process started. */
  cpuMs(): number;
  /** Collects what was allocated last; blocks for a millisecond or two. */
  collectYoung(): void;
  /** Collects all garbage, whose place is used again; blocks for some tens of milliseconds. */
  collect(): void;
  /** Collects several times, moves what is left together and releases the rest: some hundreds of milliseconds. */
  shrink(): void;
  /** Releases what is resident of the program's files, as `collect` and `shrink` do; blocks for ten milliseconds. */
  releasePages(): void;
}

const lookMs = 5000;
/** So many looks in a row must be calm: the pauses within a burst of pods are shorter, and so is its start. */
const calmLooks = 3;
/**
 * Share of one core. A node that probes hundreds of times a second is never calm, and collects often enough by itself.
 */
const calmShare = 0.1;
/** Growth that is worth a collection: of what is used since the last one, and of what is held since it was shrunk. */
const worthBytes = { used: 4 << 20, held: 8 << 20 };
/** The same for a large heap, which takes longer to collect. */
const worthShare = { used: 1 / 8, held: 1 / 4 };
/**
 * After this much CPU time, much of what was live at the last collection may be garbage, and much of the program that was
 * used is not any more.
 */
const worthCpuMs = { heap: 5000, pages: 1000 };
/** CPU time between collections, as a multiple of the last one's: of a heap that has grown, and of any. */
const worthCosts = { grown: 5, any: 20 };

interface Collected {
  readonly usedBytes: number;
  readonly cpuMs: number;
  readonly costMs: number;
  /** After the last collection that shrunk it. */
  readonly shrunkBytes: number;
}

/**
 * Collects whenever the process becomes calm after work, until the signal aborts.
 *
 * V8 collects on allocation, and an idle node allocates next to nothing: the 20 to 30 MiB that a burst of pods leaves
 * behind would stay for hours. The few MiB that a calm node leaves in a minute are worth neither several collections nor
 * one just after V8's own.
 */
export async function keepLean(heap: Heap, clock: Clock, signal: AbortSignal): Promise<void> {
  let last: Collected = { usedBytes: 0, cpuMs: 0, costMs: 0, shrunkBytes: 0 };
  let [calm, releasedMs] = [0, 0];
  for (let cpuMs = heap.cpuMs(); ; cpuMs = heap.cpuMs()) {
    await clock.sleep("next check of the heap", lookMs, signal).catch(() => {});
    if (signal.aborted) return;
    const nowMs = heap.cpuMs();
    calm = nowMs - cpuMs > lookMs * calmShare ? 0 : calm + 1;
    if (calm < calmLooks) continue;
    const newest = collected(heap, last, nowMs);
    if (newest === last) {
      if (nowMs - releasedMs < worthCpuMs.pages) continue;
      heap.releasePages();
    }
    last = newest;
    releasedMs = heap.cpuMs();
  }
}

/** @param nowMs CPU time until now */
function collected(heap: Heap, last: Collected, nowMs: number): Collected {
  const since = nowMs - last.cpuMs;
  const isSpread = (): boolean => hasGrown("held", heap.heldBytes(), last.shrunkBytes);
  const isGrown = (): boolean => isSpread() || hasGrown("used", heap.usedBytes(), last.usedBytes);
  if (since < Math.max(worthCpuMs.heap, last.costMs * worthCosts.any)) {
    if (!isGrown()) return last;
    // It is often enough: the young generation's size varies by as much.
    heap.collectYoung();
    if (!isGrown() || since < last.costMs * worthCosts.grown) return last;
  }
  const shrinks = isSpread();
  if (shrinks) heap.shrink();
  else heap.collect();
  const cpuMs = heap.cpuMs();
  const shrunkBytes = shrinks ? heap.heldBytes() : last.shrunkBytes;
  return { usedBytes: heap.usedBytes(), cpuMs, costMs: cpuMs - nowMs, shrunkBytes };
}

function hasGrown(what: keyof typeof worthBytes, bytes: number, from: number): boolean {
  return bytes - from >= Math.max(worthBytes[what], from * worthShare[what]);
}

/**
 * V8's flags for a long-running process. Compiled code is kept: compiling it again would delay the next pod by a tenth
 * of a second. V8's last compiler is off: it takes 5 MiB and saves a node no time. The one before compiles functions
 * after ten times as many calls as usual: a burst of pods calls most functions so seldom that compiling them takes longer
 * than it saves, and their code stays. And the heap can be shrunk on request.
 *
 * They are set after a node has loaded its code, not by the launcher: V8 accepts cached code only under the flags that
 * it was compiled with, so the code cache of Node.js' own modules would be useless.
 */
const flags = ["--no-flush-bytecode", "--no-turbofan", "--invocation-count-for-maglev=4000", "--expose-gc"] as const;

/** This process's heap; sets the flags of a long-running process. */
export function systemHeap(): Heap {
  for (const flag of flags) setFlagsFromString(flag);
  // The flag applies to contexts that are created after it.
  const gc = runInNewContext("gc") as NonNullable<typeof globalThis.gc>;
  const machine = machineMemory();
  return {
    heldBytes: () => getHeapStatistics().total_heap_size,
    usedBytes: () => getHeapStatistics().used_heap_size,
    cpuMs: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    collectYoung: () => gc({ type: "minor", execution: "sync" }),
    collect: () => {
      gc({ type: "major", execution: "sync" });
      machine.releaseAll();
    },
    shrink: () => {
      gc({ type: "major", execution: "sync", flavor: "last-resort" });
      machine.releaseAll();
    },
    releasePages: () => machine.releasePages(),
  };
}

/**
 * Memory outside V8's heap. The C library returns free memory at the end of its heap by itself, and holes only on
 * request (malloc_trim(3)). Where Node.js cannot call C functions, holes are retained.
 */
function machineMemory(): { releaseAll(): void; releasePages(): void } {
  try {
    const library = openCLibrary();
    const trim = library("malloc_trim", ["uint64"], "int32");
    const pages = programPages(library);
    return {
      releaseAll: () => {
        trim(0n);
        pages.release();
      },
      releasePages: () => pages.release(),
    };
  } catch {
    return { releaseAll: () => {}, releasePages: () => {} };
  }
}
