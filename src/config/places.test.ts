import assert from "node:assert/strict";
import { test } from "node:test";
import { placed, type ConfigurationLayer } from "./places.ts";

const layer = (place: string, values: object, line?: number): ConfigurationLayer => ({
  place,
  values: { ...values },
  ...(line !== undefined && { origin: { file: place, locate: (path) => ({ line, column: path.length }) } }),
});

test("a problem is prefixed with the place that sets its field", () => {
  const layers = [
    layer("/a.yaml", { maxPods: -1, port: 0, crashLoopBackOff: { maxContainerRestartPeriod: "1h" } }, 7),
    layer("/b.conf", { maxPods: -2, logging: { format: "x" } }, 3),
    layer("the command line", { oomScoreAdj: 5000 }),
  ];
  const placeOf = (problem: string): string => placed(problem, layers).replace(`: ${problem}`, "");
  assert.equal(placeOf("invalid configuration: maxPods (--max-pods) -2 must not be a negative number"), "/b.conf:3:1");
  assert.equal(placeOf("invalid configuration: port (--port) 0 must be between 1 and 65535, inclusive"), "/a.yaml:7:1");
  assert.equal(placeOf("oomScoreAdj (--oom-score-adj) 5000 must be between"), "the command line");
  assert.equal(placeOf('option "x" specified for it (--logging-format)'), "/b.conf:3:2");
  assert.equal(placeOf("CrashLoopBackOff.MaxContainerRestartPeriod (got: 3600 seconds) must be set"), "/a.yaml:7:2");
});

test("a word that only looks like a field has no place, nor does an unset field", () => {
  const layers = [layer("/a.yaml", { port: 1, address: "x" }, 7)];
  assert.equal(placed("something about a port", layers), "something about a port");
  assert.equal(placed("maxPods must not be negative", layers), "maxPods must not be negative");
});
