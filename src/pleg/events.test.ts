import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { ContainerState } from "../runtime/status/pod-status.ts";
import { computeEvents } from "./events.ts";
import type { PodRecord } from "./pod-records.ts";

const uid = podUid("uid-1");

function record(states: Readonly<Record<string, ContainerState>>): PodRecord {
  const containers = new Map(Object.entries(states).map(([id, state]) => [id, { name: id.toUpperCase(), state }]));
  return { name: "pod", namespace: "default", containers };
}

type States = Readonly<Record<string, ContainerState>> | undefined;
const rows: readonly { readonly was: States; readonly is: States; readonly events: readonly string[] }[] = [
  { was: undefined, is: { a: "running" }, events: ["ContainerStarted a"] },
  { was: undefined, is: { a: "exited" }, events: ["ContainerDied a"] },
  { was: undefined, is: { a: "created" }, events: ["ContainerChanged a"] },
  { was: { a: "created" }, is: { a: "running" }, events: ["ContainerStarted a"] },
  { was: { a: "running" }, is: { a: "running" }, events: [] },
  { was: { a: "running" }, is: { a: "exited" }, events: ["ContainerDied a"] },
  { was: { a: "running" }, is: { a: "unknown" }, events: ["ContainerChanged a"] },
  { was: { a: "running" }, is: undefined, events: ["ContainerDied a", "ContainerRemoved a"] },
  { was: { a: "exited" }, is: undefined, events: ["ContainerRemoved a"] },
  { was: { a: "exited" }, is: { a: "exited", b: "running" }, events: ["ContainerStarted b"] },
  { was: { a: "running" }, is: { a: "exited", b: "running" }, events: ["ContainerDied a", "ContainerStarted b"] },
];

describe("computeEvents", () => {
  for (const { was, is, events } of rows) {
    test(`${JSON.stringify(was) ?? "nothing"} then ${JSON.stringify(is) ?? "nothing"}: ${events.join(", ") || "no event"}`, () => {
      const computed = computeEvents(uid, was && record(was), is && record(is));
      assert.deepEqual(
        computed.map((event) => `${event.type} ${event.id}`),
        events,
      );
      for (const event of computed) assert.equal(event.container, event.id.toUpperCase());
    });
  }
});
