/**
 * The overhead of the kubelet's API: logs compared with `cat`, and commands with the runtime's own ExecSync.
 *
 * api.ts [--rounds 5] [--containerd PATH] [--json]
 *
 * Uses the engine's socket, because its handlers are the same on all servers; TLS has its usual cost in addition.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, stat } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { openStreams } from "../src/linux/streams/stream-client.ts";
import { BenchNode, podManifest } from "./support/node.ts";
import { benchOptions } from "./support/options.ts";
import { type Goal, printReport, progress } from "./support/report.ts";
import { median } from "./support/statistics.ts";

const mebibyte = 1 << 20;
/** Below the size at which logs are rotated. */
const logMebibytes = 9;
/** Number of consecutive reads. */
const readings = 20;
const logLine = `2026-01-01T00:00:00.000000000Z stdout F ${"a line of a log, as long as lines are ".repeat(2)}\n`;
const commandsEach = 20;
const commandRatio = 2;
const logRatio = 8;

interface Throughput {
  readonly cat: number;
  readonly logs: number;
  readonly timestamps: number;
  readonly cpuMs: number;
}

interface RoundTrip {
  readonly floor: number;
  readonly run: number;
  readonly exec: number;
}

/** MiB per second, reading to the end repeatedly. */
async function throughput(bytes: number, read: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  for (let reading = 0; reading < readings; reading++) await read();
  return ((bytes / mebibyte) * readings) / ((performance.now() - began) / 1000);
}

async function drain(node: BenchNode, path: string): Promise<number> {
  const outgoing = request({ socketPath: node.layout.engineSocket, path, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`);
  let bytes = 0;
  response.on("data", (chunk: Buffer) => (bytes += chunk.length));
  await once(response, "end");
  return bytes;
}

async function cat(path: string): Promise<void> {
  const child = spawn("cat", [path], { stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.resume();
  await once(child, "close");
}

/** Fills a container's log in the runtime's format. */
async function fill(path: string): Promise<number> {
  const file = await open(path, "a");
  const block = logLine.repeat(Math.floor(mebibyte / logLine.length));
  for (let written = 0; written < logMebibytes; written++) await file.write(block);
  await file.close();
  return (await stat(path)).size;
}

async function measureLogs(node: BenchNode, rounds: number): Promise<Throughput[]> {
  const pod = await node.engine.pod("logs");
  const path = pod.containers[0]?.logPath ?? "";
  const bytes = await fill(path);
  const target = `/containerLogs/default/logs/app`;
  await cat(path);
  await drain(node, `${target}?tailLines=1000`);
  const measured: Throughput[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = await node.usage();
    const of = {
      cat: await throughput(bytes, () => cat(path)),
      logs: await throughput(bytes, () => drain(node, target)),
      timestamps: await throughput(bytes, () => drain(node, `${target}?timestamps=true`)),
    };
    measured.push({ ...of, cpuMs: (await node.usage()).cpuMs - before.cpuMs });
    const show = (value: number): string => `${value.toFixed(0)} MiB/s`;
    progress(`logs, round ${round + 1} of ${rounds}: cat ${show(of.cat)}, logs ${show(of.logs)}`);
  }
  return measured;
}

/** Milliseconds of the median command. */
async function roundTrip(ask: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < commandsEach; index++) {
    const began = performance.now();
    await ask();
    times.push(performance.now() - began);
  }
  return median(times);
}

async function measureCommands(node: BenchNode, rounds: number): Promise<RoundTrip[]> {
  const pod = await node.engine.pod("logs");
  const containerId = pod.containers[0]?.id ?? "";
  const floor = async (): Promise<void> => {
    await node.cri.runtime.execSync({ containerId, cmd: ["true"] });
  };
  const run = async (): Promise<void> => {
    const path = "/run/default/logs/app?cmd=true";
    const outgoing = request({ socketPath: node.layout.engineSocket, method: "POST", path, agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.resume();
    await once(response, "end");
    if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`);
  };
  const exec = async (): Promise<void> => {
    const path = "/exec/default/logs/app?command=true&output=1";
    const { session, head } = await openStreams(node.layout.engineSocket, path, "v4.channel.k8s.io");
    let status = "";
    session.open({ streamType: "error" }, (bytes) => void (status += Buffer.from(bytes).toString()));
    session.open({ streamType: "stdout" }, () => {});
    await session.run(head);
    if (!status.includes('"Success"')) throw new Error(`${path}: ${status}`);
  };
  for (const ask of [floor, run, exec]) await ask();
  const measured: RoundTrip[] = [];
  for (let round = 0; round < rounds; round++) {
    const of = { floor: await roundTrip(floor), run: await roundTrip(run), exec: await roundTrip(exec) };
    measured.push(of);
    progress(
      `commands, round ${round + 1} of ${rounds}: ExecSync ${of.floor.toFixed(0)} ms, ` +
        `/run ${of.run.toFixed(0)} ms, /exec ${of.exec.toFixed(0)} ms`,
    );
    await sleep(200);
  }
  return measured;
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 5, pods: [1] });
  await using node = await BenchNode.start(options);
  await node.apply([podManifest("logs")]);
  await node.waitForReady("logs");
  const commands = await measureCommands(node, options.rounds);
  const logs = await measureLogs(node, options.rounds);
  const of = <T>(series: readonly T[], value: (each: T) => number): number => median(series.map(value));
  const floor = of(commands, (each) => each.floor);
  const [run, exec] = [of(commands, (each) => each.run), of(commands, (each) => each.exec)];
  const [reading, writing] = [of(logs, (each) => each.cat), of(logs, (each) => each.logs)];
  const stamped = of(logs, (each) => each.timestamps);
  const goals: Goal[] = [
    { name: "/run", value: run / floor, atMost: commandRatio, unit: "×" },
    { name: "/exec", value: exec / floor, atMost: commandRatio, unit: "×" },
    { name: "logs", value: reading / writing, atMost: logRatio, unit: "×" },
  ];
  const row = (name: string, value: number, unit: string, ratio: number): (string | number)[] => {
    return [name, `${value.toFixed(1)} ${unit}`, ratio.toFixed(2)];
  };
  printReport(
    {
      bench: "api",
      setting: [
        `${node.runtime}; medians of ${options.rounds} alternating rounds, ${commandsEach} commands each`,
        `a log of ${logMebibytes} MiB, read ${readings} times in a row; podwright ${options.program}, ${(await node.usage()).peakRssMiB.toFixed(0)} MiB at its peak`,
      ],
      columns: ["what", "median", "of the floor"],
      rows: [
        row("ExecSync, the floor", floor, "ms", 1),
        row("/run", run, "ms", run / floor),
        row("/exec, streams", exec, "ms", exec / floor),
        row("cat, the floor", reading, "MiB/s", 1),
        row("logs", writing, "MiB/s", reading / writing),
        row("logs with times", stamped, "MiB/s", reading / stamped),
      ],
      goals,
      measurements: { commands, logs },
    },
    options.json,
  );
}

await main();
