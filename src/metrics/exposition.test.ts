import assert from "node:assert/strict";
import { test } from "node:test";
import { expose } from "./exposition.ts";
import { Counter, Gauge, Histogram } from "./instruments.ts";

const describe = <const L extends readonly string[]>(
  name: string,
  labels: L,
): { name: string; help: string; stability: "ALPHA"; labels: L } => ({
  name,
  help: `Tells of "it"`,
  stability: "ALPHA",
  labels,
});

test("counters, gauges and histograms are written as Prometheus reads them", () => {
  const counter = new Counter(describe("a_total", ["who"]));
  counter.add(['b\\\n"']);
  counter.add(["x"], 2.5);
  counter.add(["x"]);
  const gauge = new Gauge(describe("b_bytes", []));
  const histogram = new Histogram(describe("c_seconds", ["verb"]), [0.1, 1]);
  for (const value of [0.1, 0.5, 7]) histogram.observe(["get"], value);
  const families = [counter, gauge, histogram, new Counter(describe("d_total", ["none"]))].map((each) => each.family());
  assert.equal(
    expose(families),
    `# HELP a_total [ALPHA] Tells of "it"
# TYPE a_total counter
a_total{who="b\\\\\\n\\""} 1
a_total{who="x"} 3.5
# HELP b_bytes [ALPHA] Tells of "it"
# TYPE b_bytes gauge
b_bytes 0
# HELP c_seconds [ALPHA] Tells of "it"
# TYPE c_seconds histogram
c_seconds_bucket{verb="get",le="0.1"} 1
c_seconds_bucket{verb="get",le="1"} 2
c_seconds_bucket{verb="get",le="+Inf"} 3
c_seconds_sum{verb="get"} 7.6
c_seconds_count{verb="get"} 3
`,
  );
});

test("a series may have a time, in milliseconds", () => {
  const samples = [{ labels: [], value: 3, timeMs: 1_500 }];
  const family = { name: "a", help: "x", type: "counter", stability: undefined, labels: [], samples } as const;
  assert.match(expose([family]), /^a 3 1500$/mu);
});

test("removed series are forgotten", () => {
  const gauge = new Gauge(describe("a", ["pod"]));
  gauge.set(["x"], 1);
  gauge.set(["y"], 2);
  gauge.remove(([pod]) => pod === "x");
  assert.deepEqual(gauge.family().samples, [{ labels: ["y"], value: 2 }]);
});
