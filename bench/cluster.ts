/**
 * A node of a cluster: from the creation of pods at the API server until they are Running, Ready and, after their
 * deletion, gone, together and one by one; restarts; statuses of rejected pods; rest, also beside dead containers. Each
 * is compared with a bare client, in one run.
 *
 * cluster.ts [--pods 1,10,50,100] [--rounds 3] [--rest 20,50,100,250] [--dead 5000] [--kubelet PATH [--alone]] [--json]
 * …
 *
 * The API server is the one for tests: it responds at once, so that the kubelet's own time shows. `--kubelet` also
 * measures another kubelet, with its own cluster and floor, after podwright, and compares the two. That kubelet is
 * stopped while the floor's pods exist, because it would remove them; so it is not measured beside dead containers.
 */
import { basename } from "node:path";
import { loadavg } from "node:os";
import { BenchCluster } from "./support/cluster.ts";
import { type ClusterOptions, clusterOptions } from "./support/cluster-options.ts";
import { besideOther, type ClusterFigures, floorGoals, restTable, timesTable } from "./support/cluster-report.ts";
import { measureRestarts } from "./support/cluster-restarts.ts";
import { Floor } from "./support/floor.ts";
import { measureOneByOne } from "./support/one-by-one.ts";
import { type BenchOptions, benchOptions } from "./support/options.ts";
import { printReport, progress } from "./support/report.ts";
import { measureRests, measureRestsBesideDead } from "./support/rest.ts";
import { floorAtOnce, measureRounds, newNames, type Outcome, runFloor, runKubelet } from "./support/rounds.ts";
import { median } from "./support/statistics.ts";
import { measureStatuses } from "./support/statuses.ts";

const podsOneByOne = 20;
const restarted = 10;
const refused = 200;

/** @param program of another kubelet; undefined: podwright's */
async function measureKubelet(options: BenchOptions & ClusterOptions, program?: string): Promise<ClusterFigures> {
  const kubelet = program === undefined ? "podwright" : basename(program);
  progress(`${kubelet}:`);
  await using cluster = await BenchCluster.start(options, program === undefined ? "podwright" : { kubelet: program });
  const floor = await Floor.open(cluster);
  await runFloor(cluster, floor, 4);
  await runKubelet(cluster, 4);
  const outcomes: Outcome[] = [];
  for (const pods of options.pods) outcomes.push(await measureRounds(cluster, floor, pods, options.rounds));
  const oneByOne = await measureOneByOne(cluster, floor, newNames("alone", podsOneByOne), "apart");
  const backToBack = await measureOneByOne(cluster, floor, newNames("row", podsOneByOne), "back to back");
  const restarts = await measureRestarts(cluster, floor, newNames("restart", restarted));
  const statuses = await measureStatuses(cluster, newNames("refused", refused));
  const restNames = (count: number): string[] => newNames("rest", count);
  const rests = await measureRests(cluster, options.rest, restNames);
  if (options.dead > 0 && program === undefined) {
    rests.push(...(await measureRestsBesideDead(cluster, floor, options.dead, options.rest, restNames)));
  }
  return { kubelet, outcomes, oneByOne, backToBack, restarts, statuses, rests };
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 3, pods: [1, 10, 50, 100] }, clusterOptions);
  const load = loadavg()[0] ?? 0;
  const podwright = options.alone ? undefined : await measureKubelet(options);
  const other = options.kubelet === undefined ? undefined : await measureKubelet(options, options.kubelet);
  const all = [podwright, other].filter((figures) => figures !== undefined);
  const beside = podwright && other && besideOther(podwright, other);
  const [first, ...more] = [
    ...all.flatMap((figures) => [timesTable(figures), ...(figures.rests.length > 0 ? [restTable(figures)] : [])]),
    ...(beside === undefined ? [] : [beside.table]),
  ];
  const programs = [options.alone ? [] : [`podwright ${options.program}`], options.kubelet ?? []]
    .flat()
    .join(", then ");
  printReport(
    {
      bench: "cluster",
      setting: [
        `${programs}; load ${load.toFixed(1)} at the start; ${options.rounds} rounds`,
        `milliseconds since pods were created, or deleted, at the API server; the floor ${floorAtOnce} at a time`,
        `restarts: from a container's exit until its next instance is started; until the API server shows that, ` +
          all.map(({ kubelet, restarts }) => `${kubelet} ${median(restarts.shown).toFixed(0)} ms`).join(", "),
        ...(options.dead > 0 && other !== undefined ? ["beside dead containers podwright alone is measured"] : []),
      ],
      columns: first?.columns ?? [],
      rows: first?.rows ?? [],
      more,
      goals: [...(podwright === undefined ? [] : floorGoals(podwright)), ...(beside?.goals ?? [])],
      measurements: { podwright, other },
    },
    options.json,
  );
}

await main();
