import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { toldLog } from "../../test/support/told-log.ts";
import { ApiError } from "../api-client/api-error.ts";
import { podUid } from "../base/ids.ts";
import { StatusNews } from "./status-news.ts";

const a = { namespace: "ns", name: "a", uid: podUid("1") };
const b = { namespace: "ns", name: "b", uid: podUid("2") };
const away = new Error("connection refused");

describe("StatusNews", () => {
  let told: string[];
  let clock: ManualClock;
  let news: StatusNews;

  beforeEach(() => {
    told = [];
    clock = new ManualClock();
    news = new StatusNews(clock, toldLog(told));
  });

  test("names the first pod whose status update fails, and reports recovery only when none fails", async () => {
    const warning = `warn: cannot send a pod's status or deletion {"namespace":"ns","name":"a","error":"connection refused","retryMs":500}`;
    for (let round = 0; round < 3; round++) {
      for (const pod of [a, b]) news.failed(pod, away, 500);
      news.arrived(b);
      news.arrived({ ...b, uid: podUid("3") });
      assert.deepEqual(told, [warning]);
    }
    await clock.advance(1000);
    news.arrived(a);
    assert.deepEqual(told.slice(1), [`info: pod status updates work again {"pods":4,"afterMs":1000}`]);
    news.failed(a, away, 500);
    assert.equal(told.length, 3, "the next time is news again");
    news.ended(a.uid);
    news.arrived(b);
    assert.match(told.at(-1) ?? "", /status updates work again/);
  });

  test("a rejected pod is reported once, beside accepted ones", () => {
    const quota = new ApiError(403, "Forbidden", "not yours");
    for (let round = 0; round < 3; round++) {
      news.failed(a, quota, 500);
      news.invalid(b, new ApiError(422, "Invalid", "not so"), 10_000);
      news.arrived({ ...b, uid: podUid("3") });
    }
    assert.deepEqual(told, [
      `warn: API server rejects a pod's status update or deletion {"namespace":"ns","name":"a","error":"not yours","retryMs":500}`,
      `warn: API server finds a pod's status invalid {"namespace":"ns","name":"b","error":"not so","retryMs":10000}`,
    ]);
    news.arrived(a);
    assert.deepEqual(told.slice(2), [`info: API server accepts a pod's status again {"namespace":"ns","name":"a"}`]);
  });
});
