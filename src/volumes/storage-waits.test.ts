import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { DeadlineError } from "../base/deadline.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { silentLog } from "../sim/machine.ts";
import { namedAfterMs, StorageWaits, type StorageWork } from "./storage-waits.ts";

const uid = "u" as PodUid;
const pod = { namespace: "ns", name: "p", uid };
const work: StorageWork = { pod, volume: "pv-1", driver: "d.example.org", operation: "tear down" };
const message = "volume pv-1 (d.example.org) does not answer: its teardown has not returned within 30 s";

let clock: ManualClock;
let entries: JournalInput[];
let waits: StorageWaits;
const told = (): string[] => entries.map(({ what, message: words }) => `${what}: ${words}`);

beforeEach(() => {
  clock = new ManualClock();
  entries = [];
  waits = new StorageWaits(clock, { record: (entry) => entries.push(entry) }, silentLog);
});

test("work that ends in time is not named", async () => {
  const end = waits.begin(work);
  await clock.advance(namedAfterMs - 1);
  end(true);
  await clock.advance(namedAfterMs);
  assert.deepEqual([told(), waits.hanging, clock.waits], [[], [], []]);
});

test("work that waits for something that is known is named with it", async () => {
  waits.explainBy(({ volume }) => `${volume} waits in line`);
  const end = waits.begin(work);
  await clock.advance(namedAfterMs);
  end(true);
  const explained = `${message}: pv-1 waits in line`;
  assert.deepEqual(told(), [`VolumeSilent: ${explained}`, `VolumeSilenceOver: ${explained}`]);
});

test("work that does not end is named with its pod and start time until it ends", async () => {
  const beganMs = clock.monotonic();
  const end = waits.begin(work);
  await clock.advance(namedAfterMs);
  assert.deepEqual(told(), [`VolumeSilent: ${message}`]);
  assert.deepEqual(entries[0]?.pod, pod);
  assert.deepEqual(
    waits.hanging.map(({ volume, driver, operation, sinceMonotonicMs }) => [
      volume,
      driver,
      operation,
      sinceMonotonicMs,
    ]),
    [["pv-1", "d.example.org", "tear down", beganMs]],
  );
  end(true);
  assert.deepEqual(told().slice(1), [`VolumeSilenceOver: ${message}`]);
  assert.deepEqual(waits.hanging, []);
});

test("work whose attempts fail has a reason, and is not silent", async () => {
  const end = waits.begin(work);
  const attempts = waits.attempts(work);
  for (const problem of ["cannot be unpublished: no", "cannot be unpublished: no", "cannot be unpublished: never"]) {
    attempts.begins();
    attempts.failed(problem, new Error(problem));
    await clock.advance(60_000);
  }
  const [no, never] = ["no", "never"].map((why) => `volume pv-1 (d.example.org) cannot be unpublished: ${why}`);
  assert.deepEqual(told(), [`VolumeHeld: ${no}`, `VolumeHeldOver: ${no}`, `VolumeHeld: ${never}`]);
  end(true);
  assert.deepEqual([told().slice(3), waits.hanging], [[`VolumeHeldOver: ${never}`], []]);
});

test("an attempt that does not end is silent, whatever the reason that the one before gave", async () => {
  const end = waits.begin(work);
  const attempts = waits.attempts(work);
  attempts.failed("cannot be unpublished: no", new Error("no"));
  await clock.advance(20_000);
  attempts.begins();
  const beganMs = clock.monotonic();
  await clock.advance(namedAfterMs);
  const held = "volume pv-1 (d.example.org) cannot be unpublished: no";
  assert.deepEqual(told(), [`VolumeHeld: ${held}`, `VolumeHeldOver: ${held}`, `VolumeSilent: ${message}`]);
  assert.equal(waits.hanging[0]?.sinceMonotonicMs, beganMs);
  attempts.failed("cannot be unpublished: no", new Error("no"));
  assert.deepEqual([told().slice(3), waits.hanging], [[`VolumeSilenceOver: ${message}`, `VolumeHeld: ${held}`], []]);
  end(true);
  assert.deepEqual(told().slice(5), [`VolumeHeldOver: ${held}`]);
});

test("an attempt that ends without an answer gives a reason, and the silence lasts", async () => {
  waits.begin(work);
  const beganMs = clock.monotonic();
  const attempts = waits.attempts(work);
  for (let tries = 0; tries < 3; tries++) {
    attempts.begins();
    await clock.advance(20_000);
    attempts.failed("cannot be unpublished: late", new DeadlineError("late", 20_000));
  }
  const held = "volume pv-1 (d.example.org) cannot be unpublished: late";
  const last = [`VolumeSilent: ${message}`, `VolumeHeld: ${held}`];
  assert.deepEqual(told(), [`VolumeHeld: ${held}`, `VolumeHeldOver: ${held}`, ...last]);
  assert.equal(waits.hanging[0]?.sinceMonotonicMs, beganMs);
});

test("a silence lasts over retries, and is reported once", async () => {
  const beganMs = clock.monotonic();
  for (let tries = 0; tries < 3; tries++) {
    const end = waits.begin(work);
    await clock.advance(20_000);
    end(false);
    await clock.advance(1_000);
  }
  assert.deepEqual([told(), waits.hanging[0]?.sinceMonotonicMs], [[`VolumeSilent: ${message}`], beganMs]);
  waits.begin(work)(true);
  assert.deepEqual(waits.hanging, []);
});

test("waits of a removed pod are dropped, others stay, the longest first", async () => {
  waits.begin({ ...work, volume: "late" });
  await clock.advance(1);
  waits.begin({ ...work, operation: "measure" });
  waits.begin({ ...work, pod: { ...pod, uid: "v" as PodUid } });
  await clock.advance(namedAfterMs);
  assert.deepEqual(
    waits.hanging.map(({ volume }) => volume),
    ["late", "pv-1", "pv-1"],
  );
  waits.forget("u", ["measure"]);
  assert.equal(waits.hanging.length, 2);
  waits.forget("u");
  assert.deepEqual(
    waits.hanging.map((each) => each.pod?.uid),
    ["v"],
  );
});

test("a kubelet that stops keeps no timer", async () => {
  waits.begin(work)(false);
  waits.close();
  assert.deepEqual([clock.waits, waits.hanging], [[], []]);
  await clock.advance(namedAfterMs);
  assert.deepEqual(told(), []);
});
