import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podView } from "../../test/support/pod-views.ts";
import { podUid } from "../base/ids.ts";
import { gonePods, KnowledgeLimit, unknownPods } from "./listing.ts";

const [web, db] = [podView({ uid: podUid("web") }), podView({ uid: podUid("db") })];
const unlisted = undefined;

test("an unlisted pod is gone once the engine knows all pods of earlier runs", () => {
  assert.deepEqual(gonePods([web, db], { views: [db], knowsAllPods: true, unlisted }), [web]);
  assert.deepEqual(gonePods([web, db], { views: [], knowsAllPods: false, unlisted }), []);
});

test("an engine with an unreadable manifest names the unlisted pods that may run", () => {
  const listing = { views: [], knowsAllPods: false, unlisted: [podUid("db")] };
  assert.deepEqual([gonePods([web, db], listing), unknownPods([web, db], listing)], [[web], [db]]);
  assert.deepEqual(unknownPods([web, db], { ...listing, views: [db] }), []);
});

test("a command waits a minute for an engine's incomplete knowledge", async () => {
  const clock = new ManualClock();
  const limit = new KnowledgeLimit(clock, "/var/lib/podwright");
  limit.check(false);
  await clock.advance(59_000);
  limit.check(true);
  limit.check(false);
  await clock.advance(59_000);
  limit.check(false);
  await clock.advance(1000);
  assert.throws(() => limit.check(false), /^PodwrightError: the engine has not found all running pods yet$/);
});
