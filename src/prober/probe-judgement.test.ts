import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import {
  firstProbeMs,
  initialResult,
  isFinal,
  judge,
  mayProbe,
  nextProbeMs,
  noStreak,
  type Streak,
} from "./probe-judgement.ts";
import { type ProbeType, probeTypes } from "./probe-spec.ts";

const F = "failure";
const S = "success";

describe("judge", () => {
  const rows: readonly [string, readonly (typeof F | typeof S)[], readonly [number, number], string][] = [
    ["the first success is enough", [S], [1, 3], "s"],
    ["two failures are not three", [F, F], [1, 3], "--"],
    ["the third failure in a row is a verdict, and so is each further one", [F, F, F, F], [1, 3], "--ff"],
    ["a success between failures starts the count over", [F, F, S, F, F, F], [1, 3], "--s--f"],
    ["a failure between successes starts theirs over", [S, F, S, S], [2, 3], "---s"],
    ["a threshold of one needs no row", [F, S, F], [1, 1], "fsf"],
  ];
  for (const [name, outcomes, [successThreshold, failureThreshold], expected] of rows) {
    test(name, () => {
      let streak: Streak = noStreak;
      const verdicts = outcomes.map((outcome) => {
        const next = judge(streak, outcome, { successThreshold, failureThreshold });
        ({ streak } = next);
        return next.verdict?.[0] ?? "-";
      });
      assert.equal(verdicts.join(""), expected);
    });
  }

  test("a verdict needs as many consecutive outcomes as its threshold", () => {
    const thresholds = fc.record({ successThreshold: fc.integer({ min: 1, max: 4 }), failureThreshold: fc.nat(4) });
    fc.assert(
      fc.property(fc.array(fc.constantFrom<typeof F | typeof S>(F, S)), thresholds, (outcomes, drawn) => {
        const limits = { ...drawn, failureThreshold: drawn.failureThreshold + 1 };
        let streak: Streak = noStreak;
        for (const [index, outcome] of outcomes.entries()) {
          const next = judge(streak, outcome, limits);
          ({ streak } = next);
          const needed = outcome === S ? limits.successThreshold : limits.failureThreshold;
          const row = outcomes.slice(Math.max(0, index + 1 - needed), index + 1);
          const complete = row.length === needed && row.every((other) => other === outcome);
          assert.equal(next.verdict, complete ? outcome : undefined);
        }
      }),
    );
  });
});

describe("mayProbe", () => {
  const up = { running: true, started: true, settled: false, ending: false };
  const rows: readonly [string, Partial<typeof up>, readonly ProbeType[]][] = [
    ["a started container is probed for liveness and readiness", {}, ["liveness", "readiness"]],
    ["one that has not started only for that", { started: false }, ["startup"]],
    ["one that does not run is not probed", { running: false }, []],
    ["after a final verdict nothing is probed", { settled: true }, []],
    ["of a pod that ends, readiness is still probed", { ending: true }, ["readiness"]],
    ["of a pod that ends before it has started, nothing is", { ending: true, started: false }, []],
  ];
  for (const [name, change, expected] of rows) {
    test(name, () => {
      const gate = { ...up, ...change };
      assert.deepEqual(
        probeTypes.filter((type) => mayProbe(type, gate)),
        expected,
      );
    });
  }
});

test("before its first verdict a container is alive, not ready, and not known to have started", () => {
  const results = probeTypes.map((type) => `${type} ${initialResult(type)}`);
  assert.deepEqual(results, ["startup unknown", "liveness success", "readiness failure"]);
});

test("startup probes end with either verdict, liveness probes with a failure, readiness probes never", () => {
  const final = probeTypes.flatMap((type) =>
    ([S, F] as const).filter((verdict) => isFinal(type, verdict)).map((verdict) => `${type} ${verdict}`),
  );
  assert.deepEqual(final, ["startup success", "startup failure", "liveness failure"]);
});

describe("the time of a probe", () => {
  const times = { initialDelayMs: 0, periodMs: 10_000 };
  const old = { nowMs: 500_000, containerStartMs: 499_000, ownStartMs: 0, draw: 0.5 };

  test("is at once for a container whose start was just observed", () => {
    assert.equal(firstProbeMs(times, old), 500_000);
  });
  test("is not before the initial delay has passed since the container's start", () => {
    assert.equal(firstProbeMs({ ...times, initialDelayMs: 5000 }, old), 504_000);
    assert.equal(firstProbeMs({ ...times, initialDelayMs: 500 }, old), 500_000);
  });
  test("is spread over the period for containers older than podwright, while that is younger than the period", () => {
    const adopted = { nowMs: 500_000, containerStartMs: 100_000, ownStartMs: 499_000, draw: 0.5 };
    assert.equal(firstProbeMs(times, adopted), 505_000);
    assert.equal(firstProbeMs(times, { ...adopted, ownStartMs: 489_000 }), 500_000);
    assert.equal(firstProbeMs(times, { ...adopted, containerStartMs: 499_500 }), 500_000);
  });
  test("is a period after the last one was due, and at once when that has passed", () => {
    assert.equal(nextProbeMs(times, 1000, 1800), 11_000);
    assert.equal(nextProbeMs(times, 1000, 15_000), 15_000);
  });
  test("is shared with others from the second on", () => {
    assert.equal(nextProbeMs(times, 1003.5, 1800), 11_050);
    assert.equal(nextProbeMs(times, 11_050, 12_000), 21_050);
    assert.equal(nextProbeMs(times, 1000, 15_001), 15_050);
  });
});
