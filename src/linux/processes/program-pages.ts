import { readFileSync } from "node:fs";
import type { CLibrary } from "./c-library.ts";

/** A mapping of this process: first address, and the one after the last. */
export interface MappedRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** MADV_DONTNEED of madvise(2). */
const dontNeed = 4;

/**
 * Mappings that hold nothing but their file's content: read-only or executable, and without private pages (which the
 * dynamic linker writes before it makes some read-only).
 * @param smaps as in proc_pid_smaps(5)
 */
export function unchangedFileRanges(smaps: string): MappedRange[] {
  const ranges: MappedRange[] = [];
  for (const entry of smaps.split(/^(?=[\da-f]+-[\da-f]+ )/mu)) {
    const [, from, to] = /^([\da-f]+)-([\da-f]+) r-[x-]p [\da-f]+ [\da-f]+:[\da-f]+ [1-9]\d* +\//u.exec(entry) ?? [];
    if (from === undefined || to === undefined || !/^Anonymous: +0 kB$/mu.test(entry)) continue;
    ranges.push({ from: BigInt(`0x${from}`), to: BigInt(`0x${to}`) });
  }
  return ranges;
}

/**
 * Releases the resident pages of this program's and its libraries' files: of the 50 MiB that Node.js touches at its
 * start, an idle node needs about half. They stay in the machine's page cache, and return without a disk read.
 */
export function programPages(library: CLibrary): { release(): void } {
  const advise = library("madvise", ["uint64", "uint64", "int32"], "int32");
  return {
    release: () => {
      // Read and used synchronously: meanwhile this thread maps and unmaps nothing, and other threads no files.
      for (const { from, to } of unchangedFileRanges(readFileSync("/proc/self/smaps", "utf8"))) {
        advise(from, to - from, dontNeed);
      }
    },
  };
}
