import type { Hunt } from "./hunt.ts";

/** The middle value, the lower of two. */
export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)] ?? 0;
}

/** How many of the selected mutants were caught. One that survives from any starting seed does not count. */
export function verdict(hunts: readonly Hunt[], chosen: number): string {
  const survivors = hunts.filter(({ seeds }) => seeds.includes(undefined));
  const caught = hunts.filter(({ seeds }) => !seeds.includes(undefined));
  const medians = caught.map(({ seeds }) => median(seeds.filter((count) => count !== undefined)));
  const unsound = chosen - hunts.length;
  return [
    `${caught.length} of ${chosen} caught`,
    ...(caught.length > 0 ? [`half of these within ${median(medians)} seeds`] : []),
    ...(survivors.length > 0
      ? [
          `${survivors.length} survived and count as not caught: ${survivors.map(({ mutant }) => mutant.name).join(" ")}`,
        ]
      : []),
    ...(unsound > 0 ? [`${unsound} could not be put in and count as not caught`] : []),
  ].join("; ");
}
