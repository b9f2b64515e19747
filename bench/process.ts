/**
 * The process itself: from the start of `podwright kubelet` to the first response of its `/healthz`, from SIGTERM to
 * its end, and commands that query it, each from start to end. One pod runs and is found by each start.
 *
 * process.ts [--rounds 10] [--launcher PATH] [--vs PATH] [--json]
 *
 * `--vs` names the launcher of another podwright, which alternates with this one.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type KubeletNode, withKubeletNode } from "../test/support/kubelet-node.ts";
import { podManifest } from "./support/node.ts";
import { count } from "./support/options.ts";
import { type Goal, printReport, progress } from "./support/report.ts";
import { median, summarize } from "./support/statistics.ts";

const goals = { start: 500, stop: 500, why: 300 } as const;
const pollMs = 2;
const limitMs = 60_000;
/** After a start, so that lazily loaded code has settled. */
const settleMs = 3000;
const root = dirname(import.meta.dirname);

type Series = Record<string, number[]>;

/** Milliseconds from the start of a command to its end. @throws Error if it fails */
async function timeCommand(launcher: string, node: KubeletNode, words: readonly string[]): Promise<number> {
  const began = performance.now();
  const child = spawn(launcher, [...words, "--state-dir", node.podwright.layout.stateDirectory], { stdio: "ignore" });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`podwright ${words.join(" ")} ended with ${code}`);
  return performance.now() - began;
}

async function answersHealthz(port: number): Promise<boolean> {
  const { promise, resolve: done } = Promise.withResolvers<boolean>();
  request({ port, host: "127.0.0.1", path: "/healthz", agent: false }, (answer) => {
    answer.resume();
    done(answer.statusCode === 200);
  })
    .on("error", () => done(false))
    .end();
  return await promise;
}

/** CPU time of a process since its start; `/proc` counts in hundredths of a second. */
async function cpuMs(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const [user, system] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14);
  return (Number(user) + Number(system)) * 10;
}

/** One run of the kubelet, with each command once. */
async function oneLife(launcher: string, node: KubeletNode, series: Series): Promise<void> {
  const note = (name: string, value: number): void => void (series[name] ??= []).push(value);
  const began = performance.now();
  const child = spawn(launcher, ["kubelet", ...node.kubeletFlags()], { stdio: "ignore" });
  const ended = once(child, "exit");
  while (!(await answersHealthz(node.healthzPort))) {
    if (child.exitCode !== null || performance.now() - began > limitMs) throw new Error("the kubelet never answered");
    await sleep(pollMs);
  }
  note("start", performance.now() - began);
  note("start, CPU", await cpuMs(child.pid));
  try {
    await sleep(settleMs);
    const status = await readFile(`/proc/${child.pid}/status`, "utf8");
    note("RSS, MiB", Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024);
    for (const words of [["why", "bench-node1"], ["ps"], ["logs", "bench-node1"]]) {
      note(words[0] ?? "", await timeCommand(launcher, node, words));
    }
  } finally {
    const told = performance.now();
    child.kill("SIGTERM");
    await ended;
    note("stop", performance.now() - told);
  }
}

function goalsOf(series: Series): Goal[] {
  return Object.entries(goals).map(([name, atMost]) => ({
    name: `median ${name}`,
    value: median(series[name] ?? []),
    atMost,
    unit: "ms",
  }));
}

function rowsOf(name: string, series: Series): (string | number)[][] {
  return Object.entries(series).map(([what, times]) => {
    const { count: runs, min, median: middle, p90, max } = summarize(times);
    return [name, what, runs, min, middle, p90, max];
  });
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "10" },
      launcher: { type: "string", default: join(root, "bin/podwright") },
      vs: { type: "string" },
      json: { type: "boolean", default: false },
    },
  });
  const launchers = [values.launcher, ...(values.vs === undefined ? [] : [values.vs])].map((path) => resolve(path));
  const measured = launchers.map((): Series => ({}));
  await withKubeletNode(async (node) => {
    await node.startContainerd();
    await node.write("bench.yaml", JSON.stringify(podManifest("bench")));
    // Warms up: compiles the code, and starts the pod.
    for (const launcher of launchers) await oneLife(launcher, node, {}).catch(() => oneLife(launcher, node, {}));
    for (let round = 0; round < count(values.rounds); round++) {
      const turns = launchers.map((launcher, index) => async () => oneLife(launcher, node, measured[index] ?? {}));
      for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
      progress(`round ${round + 1} of ${values.rounds}`);
    }
  });
  printReport(
    {
      bench: "process",
      setting: ["milliseconds, but for the resident memory a few seconds after the start; one pod runs"],
      columns: ["", "what", "runs", "min", "median", "p90", "max"],
      rows: measured.flatMap((series, index) => rowsOf(index === 0 ? "podwright" : "the other", series)),
      goals: goalsOf(measured[0] ?? {}),
      measurements: measured,
    },
    values.json,
  );
}

await main();
