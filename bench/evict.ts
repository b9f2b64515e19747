/**
 * What a node's care for its memory, disks and processes costs, and how fast it is: the CPU time of the loops that watch
 * the machine and collect images and containers, as a share of one core, with nothing to do; and the time from a hard
 * nodefs.available limit crossed to the SIGTERM of the evicted pod, on a real disk that a pod fills.
 *
 * evict.ts [--pods 250] [--rounds 20] [--turns 200] [--json]
 *
 * The pods of the loops are made up, and a runtime's own time is not measured. Needs root.
 */
import { parseArgs } from "node:util";
import { measureEvictions } from "./support/eviction-times.ts";
import { type Loop, measureLoops } from "./support/collection-loops.ts";
import { count } from "./support/options.ts";
import { printReport, progress } from "./support/report.ts";
import { summarize } from "./support/statistics.ts";

const goalPercent = 0.3;
const goalMs = 2000;

const { values } = parseArgs({
  options: {
    pods: { type: "string", default: "250" },
    rounds: { type: "string", default: "20" },
    turns: { type: "string", default: "200" },
    json: { type: "boolean", default: false },
  },
});

function percent({ cpuMs, periodMs }: Loop): number {
  return (cpuMs / periodMs) * 100;
}

async function main(): Promise<void> {
  const [pods, rounds] = [count(values.pods), count(values.rounds)];
  const loops = await measureLoops(pods, count(values.turns));
  for (const loop of loops) progress(`${loop.name}: ${percent(loop).toFixed(3)} %`);
  const timesMs = await measureEvictions(rounds);
  const { median, p90, max } = summarize(timesMs);
  printReport(
    {
      bench: "evict",
      setting: [`${pods} pods of one container; ${rounds} evictions for nodefs.available`],
      columns: ["loop", "every s", "CPU ms", "% of a core"],
      rows: loops.map((loop) => [loop.name, loop.periodMs / 1000, loop.cpuMs.toFixed(2), percent(loop).toFixed(3)]),
      more: [{ columns: ["limit crossed to SIGTERM", "p50 ms", "p90 ms", "most ms"], rows: [["", median, p90, max]] }],
      goals: [
        ...loops.map((loop) => {
          return { name: `loop of ${loop.name}`, value: percent(loop), atMost: goalPercent, unit: "%" as const };
        }),
        { name: "limit crossed to SIGTERM, median", value: median, atMost: goalMs, unit: "ms" as const },
      ],
      measurements: { loops, timesMs },
    },
    values.json,
  );
}

await main();
