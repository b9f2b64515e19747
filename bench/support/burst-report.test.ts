import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentBursts, type Burst, burstGoals, burstTable } from "./burst-report.ts";

function agent(name: string, ...cpuMs: readonly number[]): AgentBursts {
  const bursts = cpuMs.map((ms): Burst => ({
    cpuMs: ms,
    spawnedCpuMs: 0,
    restMiB: 60,
    peakMiB: 90,
    readyMs: 1,
    goneMs: 1,
  }));
  return { name, bursts: new Map([[50, bursts]]) };
}

test("ratios are those of the rounds, in which a slow machine is slow for both", () => {
  const [own, other] = [agent("podwright", 100, 900, 220), agent("kubelet", 125, 1000, 200)];
  const [cpu, peak] = burstGoals(own, other);
  assert.equal(cpu?.value, 0.9);
  assert.equal(peak?.value, 1);
  const { columns, rows } = burstTable([own, other]);
  const column = columns.indexOf("CPU ratio");
  assert.deepEqual(
    rows.map((row) => row[column]),
    ["", "0.90"],
  );
  assert.deepEqual(
    rows.map((row) => row[columns.indexOf("CPU ms")]),
    [220, 200],
  );
});
