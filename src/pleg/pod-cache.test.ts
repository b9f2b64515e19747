import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testSandbox, testStatus } from "../../test/support/observed.ts";
import { DeadlineError } from "../base/deadline.ts";
import { podUid } from "../base/ids.ts";
import { SimClock } from "../sim/clock.ts";
import { PodCache } from "./pod-cache.ts";

const uid = podUid("uid-1");
const status = testStatus([testSandbox()]);

function setUp(): { clock: SimClock; cache: PodCache } {
  const clock = new SimClock(0);
  return { clock, cache: new PodCache(clock.incarnation()) };
}

describe("PodCache", () => {
  test("a pod without an entry is empty and as fresh as the last relist", async () => {
    const { cache } = setUp();
    cache.updateTime(3);
    const empty = await cache.getNewerThan(uid, 2, 1000);
    assert.deepEqual(empty.containers, []);
    assert.deepEqual(empty.sandboxes, []);
  });

  test("getNewerThan returns a newer status at once", async () => {
    const { cache } = setUp();
    cache.set(uid, status, undefined, 5);
    assert.equal(await cache.getNewerThan(uid, 4, 1000), status);
  });

  test("getNewerThan waits for set, and the same observation is not newer", async () => {
    const { clock, cache } = setUp();
    cache.set(uid, testStatus([]), undefined, 5);
    const newer = cache.getNewerThan(uid, 5, 60_000);
    await clock.run(1000);
    cache.set(uid, status, undefined, 6);
    assert.equal(await newer, status);
  });

  test("a relist makes unchanged pods fresh, but not one that is known to have changed", async () => {
    const { clock, cache } = setUp();
    cache.set(uid, testStatus([]), undefined, 5);
    cache.markStale(uid, 5);
    const newer = cache.getNewerThan(uid, 6, 60_000);
    cache.updateTime(7);
    cache.set(uid, status, undefined, 8);
    assert.equal(await newer, status);
    await clock.run(1000);
  });

  test("an inspection that was in progress when the pod changed is no newer after a later relist", async () => {
    const { clock, cache } = setUp();
    cache.markStale(uid, 6);
    const newer = cache.getNewerThan(uid, 6, 60_000);
    cache.updateTime(7);
    cache.set(uid, testStatus([]), undefined, 6);
    await clock.run(1000);
    cache.set(uid, status, undefined, 8);
    assert.equal(await newer, status);
  });

  test("getNewerThan never waits forever: its error names the wait", async () => {
    const { clock, cache } = setUp();
    const never = cache.getNewerThan(uid, 5, 2000);
    const failed = assert.rejects(
      never,
      (error) => error instanceof DeadlineError && error.message.includes("pod uid-1"),
    );
    await clock.run(2000);
    await failed;
    assert.deepEqual(clock.pending(), []);
  });

  test("a failed inspection rejects the waiter, and the last good status stays", async () => {
    const { cache } = setUp();
    cache.set(uid, status, undefined, 5);
    const waiting = cache.getNewerThan(uid, 5, 1000);
    cache.set(uid, status, new Error("the runtime hangs"), 6);
    await assert.rejects(waiting, /the runtime hangs/);
    assert.equal(cache.get(uid).status, status);
  });

  test("an older observation never replaces a newer one", () => {
    const { cache } = setUp();
    cache.set(uid, status, undefined, 6);
    cache.set(uid, testStatus([]), undefined, 5);
    assert.equal(cache.get(uid).status, status);
  });

  test("a canceled wait rejects and leaves no timer", async () => {
    const { clock, cache } = setUp();
    const controller = new AbortController();
    const waiting = cache.getNewerThan(uid, 5, 1000, controller.signal);
    controller.abort(new Error("canceled"));
    await assert.rejects(waiting, /canceled/);
    assert.deepEqual(clock.pending(), []);
  });

  test("rejects a repeated number for a pod, a stale mark of an earlier inspection, and another pod's status", () => {
    const { cache } = setUp();
    cache.set(uid, status, undefined, 5);
    assert.throws(() => cache.set(uid, status, undefined, 5), /observations of a pod are distinct/);
    cache.markStale(uid, 6);
    assert.throws(() => cache.markStale(uid, 4), /an earlier observation does not mark a pod stale/);
    assert.throws(() => cache.set(podUid("other"), status, undefined, 7), /a cache entry has its pod's UID/);
  });
});
