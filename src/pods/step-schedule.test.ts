import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testContainer } from "../../test/support/observed.ts";
import { resyncDelayMs, retryDelayMs, StepSchedule } from "./step-schedule.ts";

const config = { syncFrequencyMs: 60_000, errorBackOffMs: 10_000 };
const first = { code: "ManifestAdded", message: "a manifest was added" } as const;
const { signal } = new AbortController();

test("a pod at rest is synced after syncFrequency, plus up to half of it", () => {
  assert.deepEqual([resyncDelayMs(config, 0), resyncDelayMs(config, 1)], [60_000, 90_000]);
});

test("a failure is retried after 10 to 15 s, sooner with a shorter syncFrequency", () => {
  assert.deepEqual([retryDelayMs(config, 0), retryDelayMs(config, 1)], [10_000, 15_000]);
  const often = { ...config, syncFrequencyMs: 2000 };
  assert.deepEqual([retryDelayMs(often, 0), retryDelayMs(often, 1)], [2000, 3000]);
});

test("the earliest request for a step counts, and a wake-up takes effect at once, even during a step", async () => {
  const clock = new ManualClock(0);
  const schedule = new StepSchedule(clock, "next look", first);
  await schedule.pause(60_000, signal);
  schedule.begin();
  assert.equal(schedule.takeCause(first), first);
  schedule.by(5000, { code: "RetryDue", message: "" });
  schedule.by(9000, { code: "Resync", message: "" });
  let ended = false;
  const pause = schedule.pause(60_000, signal).then(() => (ended = true));
  await clock.advance(4999);
  assert.equal(ended, false);
  await clock.advance(1);
  await pause;
  schedule.begin();
  assert.equal(schedule.takeCause(first).code, "RetryDue");
  schedule.wake({ code: "ContainerDied", message: "" });
  schedule.by(99_000, { code: "Resync", message: "" });
  await schedule.pause(60_000, signal);
  assert.equal(schedule.takeCause(first).code, "ContainerDied");
});

test("a step is due at the end of a decision's first wait", async () => {
  const clock = new ManualClock(0);
  const schedule = new StepSchedule(clock, "next look", first);
  schedule.begin();
  schedule.takeCause(first);
  const container = { name: "web" };
  const because = { code: "ContainerExited", message: "container web exited with code 1" } as const;
  const exited = testContainer({ state: "exited" });
  schedule.byWaits({ waits: [{ container, exited, untilMs: 7000, cause: because }], sandboxWaitUntilMs: 8000 });
  const pause = schedule.pause(60_000, signal);
  await clock.advance(7000);
  await pause;
  assert.equal(schedule.takeCause(first).code, "BackOffExpired");
});

test("a step without a time violates an invariant: it would never run", () => {
  const schedule = new StepSchedule(new ManualClock(0), "next look", first);
  assert.throws(() => schedule.by(Number.NaN, first), /a pod's next step has a time/);
});
