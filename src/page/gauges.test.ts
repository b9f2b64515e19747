import assert from "node:assert/strict";
import { test } from "node:test";
import { GaugeHistory, type GaugeSample } from "./gauges.ts";

function sample(cpuSeconds: number, pods: Readonly<Record<string, number>> = {}): GaugeSample {
  const ofPods = Object.entries(pods).map(([uid, seconds]) => [uid, { cpuSeconds: seconds, memoryBytes: 10 }] as const);
  return { capacity: { cpuCores: 2 }, cpuSeconds, memoryBytes: 100, pods: new Map(ofPods) };
}

test("cores are the rate of processor time, and unknown before the second reading and after a counter reset", () => {
  const history = new GaugeHistory();
  history.add(sample(100, { a: 5 }), 0, 0, ["a"]);
  history.add(sample(105, { a: 6 }), 10_000, 10_000, ["a"]);
  history.add(sample(106, { a: 0.5 }), 20_000, 20_000, ["a"]);
  const { node, pods } = history.view();
  assert.deepEqual(
    node.map(({ cpuCores, memoryBytes, diskBytes, pods: count }) => [cpuCores, memoryBytes, diskBytes, count]),
    [
      [null, 100, null, 1],
      [0.5, 100, null, 1],
      [0.1, 100, null, 1],
    ],
  );
  assert.deepEqual(pods["a"], [
    [null, 10],
    [0.1, 10],
    [null, 10],
  ]);
});

test("an hour of readings is kept, of existing pods, thinned out for the page", () => {
  const history = new GaugeHistory();
  for (let index = 0; index < 1000; index++) {
    history.add(
      sample(index, { a: index, b: index }),
      index * 10_000,
      index * 10_000,
      index < 500 ? ["a", "b"] : ["a"],
    );
  }
  const { node, pods } = history.view();
  assert.equal(node.length, 360);
  assert.equal(node.at(-1)?.time, 9_990_000);
  assert.deepEqual(Object.keys(pods), ["a"]);
  assert.equal(pods["a"]?.length, 90);
});

test("a pod whose amounts were not requested has a reading without values", () => {
  const history = new GaugeHistory();
  const { pods } = history.add(sample(1), 0, 0, ["a"]);
  assert.deepEqual(pods, { a: [null, null] });
});
