import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { EntryDetails, JournalInput } from "../journal/entry.ts";
import type { NameOf } from "../journal/vocabulary.ts";
import { NodeMetrics } from "./node-metrics.ts";

const note = (what: NameOf<"note">, more: Partial<EntryDetails> = {}): JournalInput => {
  return { kind: "note", what, message: "", ...more };
};
const registered = (durationMs: number, isNew = true): JournalInput => {
  return note("NodeRegistered", { durationMs, data: { isNew } });
};

/** A node that podwright begins with 40 s after its machine has booted; entries come at these times after that. */
async function started(
  entries: readonly (readonly [number, JournalInput])[],
  bootKnown = true,
): Promise<Record<string, number>> {
  const clock = new ManualClock();
  const metrics = new NodeMetrics(clock);
  metrics.nodeStart.booted(bootKnown ? clock.now() - 40_000 : undefined);
  let [passedMs] = [0];
  for (const [atMs, entry] of entries) {
    await clock.advance(atMs - passedMs);
    passedMs = atMs;
    metrics.recorded(entry);
  }
  return Object.fromEntries(
    metrics.registry.families().flatMap(({ name, type, samples }) => {
      const stage = /^kubelet_node_startup_(?:(\w+)_)?duration_seconds$/u.exec(name);
      return stage === null || type === "histogram" ? [] : [[stage[1] ?? "total", samples[0]?.value ?? NaN]];
    }),
  );
}

const nothing = { pre_kubelet: 0, pre_registration: 0, registration: 0, post_registration: 0, total: 0 };
const ready = note("NodeReady");

test("a new node's start is reported by its stages, from the boot until it is first ready", async () => {
  const entries = [
    [5000, registered(2000)],
    [7500, ready],
    [60_000, note("NodeNotReady")],
    [90_000, ready],
  ] as const;
  const stages = { pre_kubelet: 40, pre_registration: 3, registration: 2, post_registration: 2.5, total: 47.5 };
  assert.deepEqual(await started(entries), stages);
  assert.deepEqual(await started(entries.slice(0, 1)), { ...stages, post_registration: 0, total: 0 });
  assert.deepEqual(await started(entries, false), { ...stages, pre_kubelet: 0, total: 0 });
});

test("an existing Node has no start-up metrics", async () => {
  assert.deepEqual(
    await started([
      [5000, registered(2000, false)],
      [7500, ready],
    ]),
    nothing,
  );
  assert.deepEqual(await started([[7500, ready]]), nothing);
});
