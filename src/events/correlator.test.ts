import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podUid } from "../base/ids.ts";
import { EventCorrelator } from "./correlator.ts";
import type { NodeEvent } from "./entry-events.ts";

function event(message: string, uid = "u", other: Partial<NodeEvent> = {}): NodeEvent {
  const pod = { namespace: "ns", name: "web", uid: podUid(uid) };
  return { type: "Normal", reason: "R", message, pod, container: "c", ...other };
}

describe("EventCorrelator", () => {
  test("repeated events become one with a count", () => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(event("m"), 1000);
    const second = correlator.correlate(event("m"), 2000);
    assert.deepEqual([first?.count, second?.count, second?.firstMs], [1, 2, 1000]);
    assert.equal(second?.key, first?.key);
    assert.notEqual(correlator.correlate(event("m", "other"), 2000)?.key, first?.key);
  });

  test("of ten different messages of a reason, whichever container they are of, the tenth and later ones are one event", () => {
    const correlator = new EventCorrelator();
    const all = Array.from({ length: 12 }, (_, index) =>
      correlator.correlate(event(`m${index}`, "u", { container: index % 2 === 0 ? "a" : "b" }), 1000),
    );
    assert.equal(all[8]?.message, "m8");
    assert.equal(all[9]?.message, "(combined from similar events): m9");
    assert.deepEqual([all[10]?.key, all[11]?.key, all[11]?.count], [all[9]?.key, all[9]?.key, 3]);
    const known = correlator.correlate(event("m0", "u", { container: "a" }), 1000);
    assert.deepEqual([known?.message, known?.count], ["m0", 2], "it is known by itself");
    const later = correlator.correlate(event("m99"), 1000 + 600_001);
    assert.equal(later?.message, "m99", "ten minutes later it starts over");
  });

  test("one message of two containers is two events", () => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(event("m", "u", { container: "a" }), 0);
    const other = correlator.correlate(event("m", "u", { container: "b" }), 0);
    assert.notEqual(other?.key, first?.key);
    assert.equal(other?.count, 1);
  });

  test("one object has 25 events of a type at once and then one in five minutes; others have their own", () => {
    const correlator = new EventCorrelator();
    const taken = (nowMs: number, uid?: string, other?: Partial<NodeEvent>): number =>
      Array.from({ length: 40 }, () => correlator.correlate(event("m", uid, other), nowMs)).filter(Boolean).length;
    assert.equal(taken(0), 25);
    assert.equal(taken(0, "other"), 25);
    assert.equal(taken(0, "u", { type: "Warning" }), 25);
    assert.equal(taken(300_000), 1);
  });

  test("unsent events count, too", () => {
    const correlator = new EventCorrelator();
    const all = Array.from({ length: 100 }, (_, index) => correlator.correlate(event("m"), index * 10_000)?.count);
    const told = all.filter((count) => count !== undefined);
    assert.deepEqual(told, [...Array.from({ length: 25 }, (_, index) => index + 1), 31, 61, 91]);
  });
});
