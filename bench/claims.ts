/**
 * Volumes of claims: from the moment a volume is attached, or its pod created, until the pod is Ready, less the time in
 * the driver's calls, compared with pods that have no claim; many such pods at once; and a node at rest with 200 mounted
 * claims, compared with one that has as many emptyDirs in the same minutes.
 *
 * claims.ts [--pods 100] [--rounds 20] [--rest-rounds 4] [--before PROGRAM] [--json] …
 */
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { claimsOptions, type ClaimsOptions } from "./support/claims-options.ts";
import { measureClaimRests, restGoals, restRows } from "./support/claims-rest.ts";
import { ClaimScene } from "./support/claim-scene.ts";
import { BenchCluster, hasCondition } from "./support/cluster.ts";
import { podManifest } from "./support/node.ts";
import { type BenchOptions, benchOptions } from "./support/options.ts";
import { type Goal, printReport, progress, type Table } from "./support/report.ts";
import { newNames } from "./support/rounds.ts";
import { median, summarize } from "./support/statistics.ts";

const overMs = 40;
const burstRatio = 1.25;
const noSlower = 1.05;
const burstRounds = 3;
const settleMs = 1_000;

const kinds = ["no volume", "ConfigMap", "claim", "attached claim"] as const;
type Kind = (typeof kinds)[number];

/** Milliseconds until a pod is Ready, less the driver's; one per round. */
type Times = Readonly<Record<Kind, number[]>>;

interface Bursts {
  readonly plain: number[];
  /** Less the driver's time. */
  readonly claimed: number[];
  readonly driver: number[];
}

interface Scenes {
  readonly cluster: BenchCluster;
  readonly plain: ClaimScene;
  readonly attached: ClaimScene;
}

/** What a pod of a kind mounts, by its volume's source. */
function specOf(kind: Kind, name: string): object {
  if (kind === "no volume") return {};
  const source =
    kind === "ConfigMap" ? { configMap: { name: "settings" } } : { persistentVolumeClaim: { claimName: name } };
  const containers = podManifest(name).spec.containers.map((container) => {
    return { ...container, volumeMounts: [{ name: "data", mountPath: "/data" }] };
  });
  return { volumes: [{ name: "data", ...source }], containers };
}

async function ready({ cluster, plain, attached }: Scenes, kind: Kind): Promise<number> {
  const [name = ""] = newNames("claims", 1);
  if (kind === "claim") plain.claim(name);
  if (kind === "attached claim") attached.claim(name);
  const createdMs = performance.now();
  cluster.create([name], specOf(kind, name));
  const [readyMs = Number.NaN] = await cluster.times([name], (pod) => hasCondition(pod, "Ready"));
  const [fromMs, driverMs] =
    kind === "attached claim"
      ? [attached.attachedMs(name), attached.driverMs(createdMs)]
      : [createdMs, plain.driverMs(createdMs)];
  await sleep(settleMs);
  cluster.delete([name]);
  await cluster.times([name], (pod) => pod === undefined);
  await sleep(settleMs);
  return readyMs - fromMs - driverMs;
}

async function measureSingles(scenes: Scenes, rounds: number): Promise<Times> {
  const times: Times = { "no volume": [], ConfigMap: [], claim: [], "attached claim": [] };
  for (const kind of kinds) await ready(scenes, kind);
  for (let round = 0; round < rounds; round++) {
    // Each kind follows each other one.
    for (const kind of round % 2 === 0 ? kinds : kinds.toReversed()) times[kind].push(await ready(scenes, kind));
    progress(`round ${round + 1}: ${kinds.map((kind) => `${kind} ${times[kind].at(-1)?.toFixed(0)} ms`).join(", ")}`);
  }
  return times;
}

async function burst({ cluster, plain }: Scenes, count: number, kind: Kind): Promise<{ all: number; driver: number }> {
  const names = newNames("burst", count);
  if (kind === "claim") for (const name of names) plain.claim(name);
  const began = performance.now();
  for (const name of names) cluster.create([name], specOf(kind, name));
  const all = Math.max(...(await cluster.times(names, (pod) => hasCondition(pod, "Ready")))) - began;
  const driver = plain.driverMs(began);
  cluster.delete(names);
  await cluster.times(names, (pod) => pod === undefined);
  await sleep(settleMs);
  return { all, driver };
}

async function measureBursts(scenes: Scenes, count: number): Promise<Bursts> {
  const bursts: Bursts = { plain: [], claimed: [], driver: [] };
  const turns = [
    async () => void bursts.plain.push((await burst(scenes, count, "no volume")).all),
    async () => {
      const { all, driver } = await burst(scenes, count, "claim");
      bursts.claimed.push(all - driver);
      bursts.driver.push(driver);
    },
  ];
  for (let round = 0; round < burstRounds; round++) {
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
    progress(
      `${count} pods: ${bursts.plain.at(-1)?.toFixed(0)} ms, with claims ${bursts.claimed.at(-1)?.toFixed(0)} ms`,
    );
  }
  return bursts;
}

/** A ConfigMap pod with an earlier program, and with this one, in turn on two clusters. */
async function measureConfigMaps(options: BenchOptions & ClaimsOptions): Promise<Record<"now" | "before", number[]>> {
  const times = { now: [] as number[], before: [] as number[] };
  const { before } = options;
  if (before === undefined) return times;
  await using now = await BenchCluster.start(options, "podwright");
  await using earlier = await BenchCluster.start({ ...options, program: before }, "podwright");
  const turns = [
    { cluster: now, series: times.now },
    { cluster: earlier, series: times.before },
  ];
  for (const { cluster } of turns) await configMapReady(cluster);
  for (let round = 0; round < options.rounds * 2; round++) {
    for (const { cluster, series } of round % 2 === 0 ? turns : turns.toReversed()) {
      series.push(await configMapReady(cluster));
    }
  }
  progress(`ConfigMap pods: ${median(times.now).toFixed(0)} ms, before ${median(times.before).toFixed(0)} ms`);
  return times;
}

async function configMapReady(cluster: BenchCluster): Promise<number> {
  makeSettings(cluster);
  const [name = ""] = newNames("map", 1);
  const began = performance.now();
  cluster.create([name], specOf("ConfigMap", name));
  const [readyMs = Number.NaN] = await cluster.times([name], (pod) => hasCondition(pod, "Ready"));
  cluster.delete([name]);
  await cluster.times([name], (pod) => pod === undefined);
  await sleep(settleMs);
  return readyMs - began;
}

function makeSettings({ server }: BenchCluster): void {
  if (server.admin.find("configmaps", "default/settings") !== undefined) return;
  const metadata = { name: "settings", namespace: "default" };
  server.admin.create({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "b" } });
}

async function measureStarts(options: BenchOptions): Promise<{ readonly singles: Times; readonly bursts: Bursts[] }> {
  await using cluster = await BenchCluster.start(options, "podwright");
  makeSettings(cluster);
  await using plain = await ClaimScene.open(cluster, false);
  await using attached = await ClaimScene.open(cluster, true);
  const scenes = { cluster, plain, attached };
  const singles = await measureSingles(scenes, options.rounds);
  const bursts: Bursts[] = [];
  for (const pods of options.pods) bursts.push(await measureBursts(scenes, pods));
  return { singles, bursts };
}

function singleGoals(singles: Times): Goal[] {
  return (["claim", "attached claim"] as const).map((kind) => ({
    name: `a pod with ${kind === "claim" ? "a claim" : "an attached claim"}, over one without`,
    value: median(singles[kind]) - median(singles["no volume"]),
    atMost: overMs,
    unit: "ms",
  }));
}

function burstTable(pods: readonly number[], bursts: readonly Bursts[]): Table {
  return {
    columns: ["pods at once", "without claims", "with claims, less the driver", "the driver", "ratio"],
    rows: bursts.map(({ plain, claimed, driver }, index) => [
      pods[index] ?? 0,
      median(plain),
      median(claimed),
      median(driver),
      (median(claimed) / median(plain)).toFixed(2),
    ]),
  };
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 20, pods: [100] }, claimsOptions);
  const load = loadavg()[0] ?? 0;
  const { singles, bursts } = await measureStarts(options);
  const maps = await measureConfigMaps(options);
  const rests = await measureClaimRests(options, options.restRounds);
  const mapGoals: Goal[] =
    maps.before.length === 0
      ? []
      : [
          {
            name: "a ConfigMap pod",
            value: median(maps.now) / median(maps.before),
            atMost: noSlower,
            unit: "× before",
          },
        ];
  printReport(
    {
      bench: "claims",
      setting: [
        `podwright ${options.program}; load ${load.toFixed(1)} at the start; ${options.rounds} rounds`,
        "milliseconds from the pod's creation, or the volume's attachment, until the pod is Ready, less the driver's calls",
      ],
      columns: ["pod", "median", "p90", "least", "most"],
      rows: kinds.map((kind) => {
        const { median: middle, p90, min, max } = summarize(singles[kind]);
        return [kind, middle, p90, min, max];
      }),
      more: [burstTable(options.pods, bursts), ...(rests.length > 0 ? [restRows(rests)] : [])],
      goals: [
        ...singleGoals(singles),
        ...bursts.map(({ plain, claimed }, index): Goal => ({
          name: `${options.pods[index]} pods with a claim each`,
          value: median(claimed) / median(plain),
          atMost: burstRatio,
          unit: "× without",
        })),
        ...mapGoals,
        ...restGoals(rests),
      ],
      measurements: { singles, bursts, maps, rests },
    },
    options.json,
  );
}

await main();
