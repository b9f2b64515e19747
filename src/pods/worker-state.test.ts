import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { containerId } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import { completed, type Ending, unwanted } from "./ending.ts";
import { checkTransition, terminate, type WorkerState } from "./worker-state.ts";

const cause: Cause = { code: "Resync", message: "a test" };
const ending = (graceSeconds: number): Ending => unwanted(cause, graceSeconds);

describe("worker states", () => {
  test("a pod that is terminating never runs again", () => {
    const terminating = terminate({ kind: "syncing" }, ending(30), 0);
    assert.throws(() => checkTransition(terminating, { kind: "syncing" }), /cannot go from terminating to syncing/);
    assert.throws(() => checkTransition({ kind: "finished" }, terminating));
    assert.throws(() => checkTransition({ kind: "syncing" }, { kind: "finished" }));
  });

  test("a grace of 0 counts as 1 second", () => {
    assert.deepEqual(terminate({ kind: "syncing" }, ending(0), 500), {
      kind: "terminating",
      ending: ending(0),
      killAtMs: 1500,
    });
  });

  test("a later, longer grace period changes nothing, a shorter one shortens the rest", () => {
    const first = terminate({ kind: "syncing" }, ending(30), 0);
    assert.equal(terminate(first, ending(60), 1000), first);
    assert.deepEqual(terminate(first, ending(5), 1000), { kind: "terminating", ending: ending(5), killAtMs: 6000 });
  });

  test("a pod that the node failed keeps that reason when it is deleted with a shorter grace period", () => {
    const disruption = "Pod was preempted";
    const preempted: Ending = { cause, outcome: "cutShort", lasts: true, graceSeconds: 30, disruption };
    const state = terminate(terminate({ kind: "syncing" }, preempted, 0), ending(5), 1000);
    assert.deepEqual(state, { kind: "terminating", ending: { ...preempted, graceSeconds: 5 }, killAtMs: 6000 });
  });

  test("of two reasons for which the node fails a pod the last one counts, and of none and one that one", () => {
    const failed = (code: "Preempting" | "Evicted", graceSeconds: number): Ending => {
      return { cause: { code, message: "a test" }, outcome: "cutShort", lasts: true, graceSeconds };
    };
    for (const first of [failed("Preempting", 30), ending(30)]) {
      const state = terminate(terminate({ kind: "syncing" }, first, 0), failed("Evicted", 1), 5000);
      assert.deepEqual(state, { kind: "terminating", ending: failed("Evicted", 1), killAtMs: 6000 });
    }
    const overdue: Ending = { ...failed("Preempting", 30), outcome: "failed" };
    const state = terminate(terminate({ kind: "syncing" }, overdue, 0), failed("Evicted", 1), 5000);
    const kept: Ending = { ...failed("Evicted", 1), outcome: "failed" };
    assert.deepEqual(state, { kind: "terminating", ending: kept, killAtMs: 6000 }, "it has failed however it exits");
  });

  test("a pod that an earlier run failed, and that is deleted now, has failed with any grace period", () => {
    const resumedEnding: Ending = { cause, outcome: "cutShort", lasts: true, graceSeconds: 30 };
    const state = terminate(terminate({ kind: "syncing" }, ending(10), 0), resumedEnding, 0);
    const kept = { kind: "terminating", ending: { ...resumedEnding, graceSeconds: 10 }, killAtMs: 10_000 };
    assert.deepEqual(state, kept);
    assert.equal(terminate(state, resumedEnding, 0), state);
  });

  test("a container may have its own grace period, even longer than its pod's, which a shorter one does not change", () => {
    const id = containerId("c");
    const done = completed(cause, 30, [{ id, seconds: 5 }]);
    const first = terminate({ kind: "syncing" }, done, 0);
    const killsAtMs = new Map([[id, 5000]]);
    assert.deepEqual(first, { kind: "terminating", ending: done, killAtMs: 30_000, killsAtMs });
    const sooner = { kind: "terminating", ending: ending(9), killAtMs: 10_000, killsAtMs };
    assert.deepEqual(terminate(first, ending(9), 1000), sooner);
    const longer = terminate({ kind: "syncing" }, completed(cause, 30, [{ id, seconds: 60 }]), 0);
    assert.equal(longer.kind === "terminating" && longer.killAtMs, 60_000);
  });

  test("the time of SIGKILL never moves later", () => {
    const requests = fc.array(fc.record({ afterMs: fc.nat(20_000), graceSeconds: fc.integer({ min: -5, max: 100 }) }), {
      minLength: 1,
    });
    fc.assert(
      fc.property(requests, (asked) => {
        let state: WorkerState = { kind: "syncing" };
        let nowMs = 0;
        let last = Number.POSITIVE_INFINITY;
        for (const { afterMs, graceSeconds } of asked) {
          nowMs += afterMs;
          state = terminate(state, ending(graceSeconds), nowMs);
          assert.ok(state.kind === "terminating" && state.killAtMs <= last);
          last = state.killAtMs;
        }
      }),
    );
  });
});
