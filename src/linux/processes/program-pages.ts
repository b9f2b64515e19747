import { readFileSync } from "node:fs";
import type { CLibrary } from "./c-library.ts";

/** A mapping of this process, first and last address (the last one exclusive). */
export interface MappedRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** MADV_DONTNEED of madvise(2). */
const dontNeed = 4;

/**
 * The mappings of files that hold nothing but what is in the file: read-only or executable, and without a page of their
 * own (what the dynamic linker wrote before it made them read-only).
 * @param smaps as proc_pid_smaps(5) has it
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
 * Drops the pages of this program's and its libraries' files: of the 50 MiB that Node.js and its start touch, a node at
 * rest needs about half. They stay in the machine's page cache, and return without a read from disk.
 */
export function programPages(library: CLibrary): { release(): void } {
  const advise = library("madvise", ["uint64", "uint64", "int32"], "int32");
  return {
    release: () => {
      // Read and used at once: nothing is mapped or unmapped by this thread meanwhile, and files by no other.
      for (const { from, to } of unchangedFileRanges(readFileSync("/proc/self/smaps", "utf8"))) {
        advise(from, to - from, dontNeed);
      }
    },
  };
}
