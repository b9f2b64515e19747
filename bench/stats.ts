/**
 * The cost of statistics and metrics: the time of each response, and the CPU time of scrapes every 10 s, as a share of
 * one core.
 *
 * stats.ts [--pods 100] [--rounds 20] [--json]
 *
 * The cgroups are real, with a process in each container's; the pods are made up, and the runtime's part (writable
 * layers) is available at once, because a runtime's own time is not measured. Needs root.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Pod } from "../src/api/pod.ts";
import { containerId, sandboxId, podUid } from "../src/base/ids.ts";
import { nodeFigures } from "../src/engine/node-figures.ts";
import { NodeStats } from "../src/engine/node-stats.ts";
import { systemClock } from "../src/linux/processes/clock.ts";
import { systemProcesses } from "../src/linux/processes/processes.ts";
import { openStatsFiles } from "../src/linux/files/stats-files.ts";
import { expose } from "../src/metrics/exposition.ts";
import { NodeMetrics } from "../src/metrics/node-metrics.ts";
import type { NodePod } from "../src/node-api/node-pods.ts";
import type { Cri } from "../src/ports/cri.ts";
import type { CgroupLayout } from "../src/ports/stats-files.ts";
import { silentLog } from "../src/sim/machine.ts";
import { testContainer, testSandbox, testStatus } from "../test/support/observed.ts";
import { type Goal, printReport, progress } from "./support/report.ts";

const goalPercent = 3;
const periodMs = 10_000;
/** Requests within a second get the previous figures. */
const freshMs = 1_050;

const { values } = parseArgs({
  options: {
    pods: { type: "string", default: "100" },
    rounds: { type: "string", default: "10" },
    json: { type: "boolean", default: false },
  },
});

const root = `/podwright-bench-${process.pid}`;

function rootsOf(layout: CgroupLayout): string[] {
  return layout.version === 2
    ? [layout.root]
    : [...new Set(["cpu", "cpuacct", "memory", "pids", "blkio"].flatMap((name) => layout.controllers[name] ?? []))];
}

/** Real cgroups of made-up pods; removed when disposed of. */
class Cgroups implements Disposable {
  readonly #roots: readonly string[];
  readonly #made: string[] = [];
  readonly #processes: ChildProcess[] = [];

  constructor(layout: CgroupLayout) {
    this.#roots = rootsOf(layout);
    for (const path of ["", "/kubepods", "/kubepods/besteffort"]) this.#make(`${root}${path}`);
  }

  addPod(uid: string, containers: readonly string[]): void {
    const pod = `${root}/kubepods/besteffort/pod${uid}`;
    this.#make(pod);
    for (const container of containers) {
      this.#make(`${pod}/${container}`);
      const child = spawn("sleep", ["100000"], { stdio: "ignore" });
      this.#processes.push(child);
      for (const each of this.#roots) writeFileSync(join(each, pod, container, "cgroup.procs"), String(child.pid));
    }
  }

  [Symbol.dispose](): void {
    for (const child of this.#processes) child.kill("SIGKILL");
    const end = performance.now() + 5_000;
    for (const directory of this.#made.toReversed()) {
      while (performance.now() < end) {
        try {
          rmdirSync(directory);
          break;
        } catch {
          // Killed processes leave a moment later.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
        }
      }
    }
  }

  #make(path: string): void {
    for (const each of this.#roots) {
      mkdirSync(join(each, path));
      this.#made.push(join(each, path));
    }
  }
}

function podOf(index: number): NodePod & { readonly ids: readonly string[] } {
  const uid = `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
  const hex = String(index).padStart(8, "0");
  const [sandbox, container] = [`${"a".repeat(56)}${hex}`, `${"b".repeat(56)}${hex}`];
  const pod: Pod = {
    metadata: { name: `pod-${index}`, namespace: "bench", uid: podUid(uid) },
    spec: { containers: [{ name: "c", image: "busybox" }] },
  };
  const status = testStatus([testSandbox({ id: sandboxId(sandbox) })], [testContainer({ id: containerId(container) })]);
  return {
    pod,
    status: undefined,
    observed: { ...status, name: pod.metadata.name },
    ended: false,
    ids: [sandbox, container],
  };
}

/** A runtime that responds at once, with a writable layer for each container. */
function runtimeOf(pods: readonly { readonly ids: readonly string[] }[]): Cri {
  const fsId = { mountpoint: "/" };
  const writableLayer = { timestamp: 1n, fsId, usedBytes: { value: 4096n }, inodesUsed: { value: 1n } };
  const stats = pods.map(({ ids }) => ({ attributes: { id: ids[1] ?? "" }, writableLayer }));
  const cri = {
    runtime: { listContainerStats: async () => ({ stats }) },
    images: { imageFsInfo: async () => ({ imageFilesystems: [writableLayer], containerFilesystems: [] }) },
  };
  return cri as unknown as Cri;
}

interface Measurement {
  readonly what: string;
  readonly latenciesMs: readonly number[];
  readonly cpuMs: number;
  readonly kibibytes: number;
}

async function measure(what: string, rounds: number, ask: () => Promise<string>): Promise<Measurement> {
  await ask();
  const latenciesMs: number[] = [];
  let [cpu, bytes] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    await sleep(freshMs);
    const [began, used] = [performance.now(), process.cpuUsage()];
    bytes = Buffer.byteLength(await ask());
    latenciesMs.push(performance.now() - began);
    const { user, system } = process.cpuUsage(used);
    cpu += user + system;
  }
  return {
    what,
    latenciesMs: latenciesMs.toSorted((a, b) => a - b),
    cpuMs: cpu / 1000 / rounds,
    kibibytes: bytes / 1024,
  };
}

async function main(): Promise<void> {
  const [count, rounds] = [Number(values.pods), Number(values.rounds)];
  const files = await openStatsFiles(systemClock);
  using cgroups = new Cgroups(files.cgroups);
  const pods = Array.from({ length: count }, (_, index) => podOf(index));
  for (const { pod, ids } of pods) cgroups.addPod(pod.metadata.uid, ids);
  progress(`${count} pods of cgroups v${files.cgroups.version}`);
  const volumes = { measuredVolumes: () => [], silentVolumes: () => [], quotaUsage: async () => undefined };
  const node = { nodePods: () => pods, ...volumes };
  const settings = { kubeletCgroups: "", runtimeCgroups: "", systemCgroups: "", volumePeriodMs: 60_000 };
  const { signal } = new AbortController();
  const context = {
    ...{ nodeName: "bench", rootDirectory: "/tmp", podLogsRoot: "/var/log/pods" },
    ...{ cgroupRoot: root, cgroupDriver: "cgroupfs" as const },
  };
  const deps = { clock: systemClock, processes: systemProcesses, files, cri: runtimeOf(pods), log: silentLog };
  const stats = new NodeStats(deps, context, "containerd", settings, signal);
  stats.connect(node);
  const metrics = new NodeMetrics(systemClock);
  const counted = pods.map(({ pod, observed }) => {
    const is = {
      isStatic: false,
      wanted: true,
      isOrphan: false,
      isRefused: false,
      state: "syncing" as const,
      pendingResize: undefined,
      resizing: false,
      volumePlugins: [],
    };
    return { pod, observed, ...is, volumePlugins: [] };
  });
  metrics.attach({ pods: () => ({ pods: counted, mirrorPods: 0 }), pod: () => undefined });
  const facts = {
    nodeName: "bench",
    version: "0",
    platform: "",
    cgroupVersion: files.cgroups.version,
    features: [],
    runtimeUnsupportedFrom: undefined,
    credentialConfigHash: undefined,
  };
  const imageRecords = async () => ({ intents: 0, pulled: 0 });
  const figures = nodeFigures(
    { stats, metrics, node: { health: () => [] }, files, log: silentLog, ownPid: process.pid, imageRecords },
    { fileSystems: ["/"], version: "", facts },
  );
  const text = async (path: string): Promise<string> => expose((await figures.families[path]?.()) ?? []);
  const asks: readonly (readonly [string, () => Promise<string>])[] = [
    ["/stats/summary", async () => JSON.stringify(await figures.summary(false))],
    ["/stats/summary?only_cpu_and_memory", async () => JSON.stringify(await figures.summary(true))],
    ["/metrics/resource", () => text("/metrics/resource")],
    ["/metrics/cadvisor", () => text("/metrics/cadvisor")],
    ["/metrics", () => text("/metrics")],
  ];
  const rssBefore = process.memoryUsage.rss();
  const measurements: Measurement[] = [];
  for (const [what, ask] of asks) {
    progress(what);
    measurements.push(await measure(what, rounds, ask));
  }
  const grownMiB = (process.memoryUsage.rss() - rssBefore) / 1024 / 1024;
  const percent = ({ cpuMs }: Measurement): number => (cpuMs / periodMs) * 100;
  const at = (sorted: readonly number[], part: number): number => sorted[Math.floor((sorted.length - 1) * part)] ?? 0;
  const goals = measurements.map((each): Goal => ({
    name: `${each.what} every 10 s`,
    value: percent(each),
    atMost: goalPercent,
    unit: "%",
  }));
  printReport(
    {
      bench: "stats",
      setting: [
        `${count} pods of one container, cgroups v${files.cgroups.version}, ${rounds} answers each`,
        `memory grew by ${grownMiB.toFixed(1)} MiB over all of it`,
      ],
      columns: ["what", "p50 ms", "p99 ms", "CPU ms", "% of a core", "KiB"],
      rows: measurements.map((each) => [
        each.what,
        at(each.latenciesMs, 0.5).toFixed(1),
        at(each.latenciesMs, 0.99).toFixed(1),
        each.cpuMs.toFixed(1),
        percent(each).toFixed(2),
        each.kibibytes,
      ]),
      goals,
      measurements,
    },
    values.json,
  );
}

await main();
