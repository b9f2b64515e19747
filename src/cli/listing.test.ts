import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../test/support/pod-views.ts";
import { podUid } from "../base/ids.ts";
import { gonePods } from "./listing.ts";

test("an unlisted pod is gone once the engine knows all pods of earlier runs", () => {
  const [web, db] = [podView({ uid: podUid("web") }), podView({ uid: podUid("db") })];
  assert.deepEqual(gonePods([web, db], { views: [db], knowsAllPods: true }), [web]);
  assert.deepEqual(gonePods([web, db], { views: [], knowsAllPods: false }), []);
});
