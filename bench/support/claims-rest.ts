import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ClaimScene } from "./claim-scene.ts";
import { BenchCluster, hasCondition } from "./cluster.ts";
import { podManifest } from "./node.ts";
import type { BenchOptions } from "./options.ts";
import { type Goal, progress, type Table } from "./report.ts";
import { type Rest, restFor } from "./rest-figures.ts";
import { newNames } from "./rounds.ts";
import { median } from "./statistics.ts";

const pods = 20;
const volumesEach = 10;
/** By then what follows the start is done. */
const calmMs = 60_000;
/** Memory rises by some MiB between two collections, which are one or two minutes apart: this spans several. */
const restMs = 240_000;
const scrapeMs = 60_000;
const atMost = 1.05;

/** Both of the same minutes. */
export interface ClaimRest {
  readonly claims: Rest;
  readonly emptyDirs: Rest;
}

/** Two nodes at rest with as many volumes each, in the same minutes; which of them starts first alternates. */
export async function measureClaimRests(options: BenchOptions, rounds: number): Promise<ClaimRest[]> {
  const rests: ClaimRest[] = [];
  for (let round = 0; round < rounds; round++) {
    const rest = await measureOnce(options, round % 2 === 0);
    const text = ({ cpuPercent, rssMiB }: Rest): string => `${cpuPercent.toFixed(2)} %, ${rssMiB.toFixed(1)} MiB`;
    progress(`at rest: claims ${text(rest.claims)}, emptyDirs ${text(rest.emptyDirs)}`);
    rests.push(rest);
  }
  return rests;
}

async function measureOnce(options: BenchOptions, claimsFirst: boolean): Promise<ClaimRest> {
  await using first = await BenchCluster.start(options, "podwright");
  await using second = await BenchCluster.start(options, "podwright");
  const [withClaims, without] = claimsFirst ? [first, second] : [second, first];
  await using scene = await ClaimScene.open(withClaims, false);
  await start(withClaims, scene);
  await start(without);
  await sleep(calmMs);
  using _scrapes = scraped([first, second]);
  const [claims, emptyDirs] = await Promise.all(
    [withClaims, without].map((cluster) => restFor(restMs, async () => await cluster.usage())),
  );
  if (claims === undefined || emptyDirs === undefined) throw new Error("nothing was measured");
  for (const cluster of [withClaims, without]) {
    const names = cluster.server.admin.list("pods").map(({ metadata }) => metadata.name ?? "");
    cluster.delete(names);
    await cluster.times(names, (pod) => pod === undefined);
  }
  // Its volumes are unstaged after their pods.
  await sleep(5_000);
  return { claims, emptyDirs };
}

/** @param scene undefined: the volumes are emptyDirs */
async function start(cluster: BenchCluster, scene?: ClaimScene): Promise<void> {
  const names = newNames("rest", pods);
  for (const name of names) {
    const volumes = Array.from({ length: volumesEach }, (_, index) => {
      const volume = `${name}-${index}`;
      scene?.claim(volume);
      const source = scene === undefined ? { emptyDir: {} } : { persistentVolumeClaim: { claimName: volume } };
      return { name: volume, ...source };
    });
    const volumeMounts = volumes.map(({ name: volume }) => ({ name: volume, mountPath: `/${volume}` }));
    const containers = podManifest(name).spec.containers.map((container) => ({ ...container, volumeMounts }));
    cluster.create([name], { volumes, containers });
  }
  await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
}

/** Asks each for the statistics of its volumes, each minute, until disposed of. */
function scraped(clusters: readonly BenchCluster[]): Disposable {
  const scrape = (): void => {
    for (const cluster of clusters) void summary(cluster.layout.engineSocket);
  };
  scrape();
  const timer = setInterval(scrape, scrapeMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function summary(socketPath: string): Promise<void> {
  const outgoing = request({ socketPath, path: "/stats/summary", agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`/stats/summary: ${response.statusCode}`);
  response.resume();
  await once(response, "end");
}

export function restRows(rests: readonly ClaimRest[]): Table {
  return {
    columns: [`${pods * volumesEach} volumes at rest`, "CPU %", "RSS MiB"],
    rows: rests.flatMap(({ claims, emptyDirs }) =>
      [["claims", claims] as const, ["emptyDirs", emptyDirs] as const].map(([name, { cpuPercent, rssMiB }]) => [
        name,
        cpuPercent.toFixed(2),
        rssMiB.toFixed(1),
      ]),
    ),
  };
}

/** As much as emptyDirs, or within the spread of emptyDirs alone. */
export function restGoals(rests: readonly ClaimRest[]): Goal[] {
  if (rests.length === 0) return [];
  return (["cpuPercent", "rssMiB"] as const).map((figure) => {
    const before = rests.map(({ emptyDirs }) => emptyDirs[figure]);
    return {
      name: `${pods * volumesEach} claims at rest, ${figure === "cpuPercent" ? "CPU" : "RSS"}`,
      value: median(rests.map(({ claims, emptyDirs }) => claims[figure] / emptyDirs[figure])),
      atMost: Math.max(atMost, Math.max(...before) / median(before)),
      unit: "× emptyDirs",
    };
  });
}
