import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EventCorrelator } from "./correlator.ts";
import type { NodeEvent } from "./entry-events.ts";

function event(message: string, uid = "u"): NodeEvent {
  const pod = { namespace: "ns", name: "web", uid };
  return { type: "Normal", reason: "R", message, pod, container: "c" };
}

describe("EventCorrelator", () => {
  test("what repeats is one event with a count", () => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(event("m"), 1000);
    const second = correlator.correlate(event("m"), 2000);
    assert.deepEqual([first?.count, second?.count, second?.firstMs], [1, 2, 1000]);
    assert.equal(second?.key, first?.key);
    assert.notEqual(correlator.correlate(event("m", "other"), 2000)?.key, first?.key);
  });

  test("after ten different messages of a reason the others are one event", () => {
    const correlator = new EventCorrelator();
    const all = Array.from({ length: 12 }, (_, index) => correlator.correlate(event(`m${index}`), 1000));
    assert.equal(all[9]?.message, "m9");
    assert.equal(all[10]?.message, "(combined from similar events): m10");
    assert.deepEqual([all[11]?.key, all[11]?.count], [all[10]?.key, 2]);
    const later = correlator.correlate(event("m99"), 1000 + 600_001);
    assert.equal(later?.message, "m99", "ten minutes later it starts over");
  });

  test("one object has 25 events at once and then one in five minutes; others have their own", () => {
    const correlator = new EventCorrelator();
    const taken = (nowMs: number, uid?: string): number =>
      Array.from({ length: 40 }, () => correlator.correlate(event("m", uid), nowMs)).filter(Boolean).length;
    assert.equal(taken(0), 25);
    assert.equal(taken(0, "other"), 25);
    assert.equal(taken(300_000), 1);
  });

  test("an event that the server has forgotten is a new one", () => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(event("m"), 0);
    correlator.forget(first?.key ?? "");
    assert.equal(correlator.correlate(event("m"), 1)?.count, 1);
  });
});
