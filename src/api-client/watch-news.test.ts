import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { toldLog } from "../../test/support/told-log.ts";
import { ApiDecodeError, ApiError } from "./api-error.ts";
import { WatchNews } from "./watch-news.ts";

const pods = { name: "pods" };
const node = { name: "node" };
const broken = new Error("connection refused");
const forbidden = new ApiError(403, "Forbidden", "not yours");

describe("WatchNews", () => {
  let told: string[];
  let clock: ManualClock;
  let news: WatchNews;

  beforeEach(() => {
    told = [];
    clock = new ManualClock();
    news = new WatchNews(clock, toldLog(told));
  });

  test("reports once that the server is unreachable, and once that it is back, for all watches", async () => {
    for (const problems of [1, 2, 3]) {
      for (const watched of [pods, node]) news.failed(watched, broken, problems, 800.4);
    }
    const away = `warn: cannot list or watch at the API server {"what":"pods","error":"connection refused","retryMs":800}`;
    assert.deepEqual(told, [away]);
    await clock.advance(60_000);
    news.answered(pods);
    assert.equal(told.length, 1, "one of two is not all");
    news.answered(node);
    assert.deepEqual(told.slice(1), [`info: list and watch at the API server work again {"afterMs":60000}`]);
    for (const problems of [1, 2]) news.failed(node, broken, problems, 800);
    assert.equal(told.length, 3, "the next time is news again");
  });

  test("a watch that is no longer needed does not keep the server unreachable", () => {
    for (const watched of [pods, node]) news.failed(watched, broken, 2, 800);
    news.ended(node);
    news.answered(pods);
    assert.equal(told.at(-1), `info: list and watch at the API server work again {"afterMs":0}`);
  });

  test("undecodable responses are reported for each watch, also while others get no response", () => {
    news.failed(node, broken, 2, 800);
    const unreadable = new ApiDecodeError("the response is not a list of pods: items does not fit (invalid_type)");
    for (const problems of [2, 3]) news.failed(pods, unreadable, problems, 800);
    const fields = { what: "pods", error: unreadable.message, retryMs: 800 };
    assert.deepEqual(told.slice(1), [`warn: cannot decode a response of the API server ${JSON.stringify(fields)}`]);
  });

  test("each rejected watch is reported once while the server works", () => {
    for (const problems of [1, 2, 3]) {
      for (const watched of [pods, node]) news.failed(watched, forbidden, problems, 800);
    }
    assert.deepEqual(told, [
      `warn: API server rejects a watch {"what":"pods","error":"not yours","retryMs":800}`,
      `warn: API server rejects a watch {"what":"node","error":"not yours","retryMs":800}`,
    ]);
    news.answered(node);
    assert.deepEqual(told.slice(2), [`info: watch works again {"what":"node"}`]);
  });

  test("a proxy's responses, and 401, concern all watches and are reported once", () => {
    const answers = [new ApiError(404, "", "404, text/html"), new ApiError(401, "Unauthorized", "who are you")];
    for (const answer of answers) {
      for (const watched of [pods, node]) news.failed(watched, answer, 2, 800);
      for (const watched of [pods, node]) news.answered(watched);
    }
    assert.deepEqual(told, [
      `warn: cannot list or watch at the API server {"what":"pods","error":"404, text/html","retryMs":800}`,
      `info: list and watch at the API server work again {"afterMs":0}`,
      `warn: cannot list or watch at the API server {"what":"pods","error":"who are you","retryMs":800}`,
      `info: list and watch at the API server work again {"afterMs":0}`,
    ]);
  });

  test("the first watch that works again ends the pauses of those without response, and no others", async () => {
    const ended: string[] = [];
    const { signal } = new AbortController();
    for (const watched of [pods, node]) news.failed(watched, broken, 2, 800);
    const refused = { name: "secret" };
    news.failed(refused, forbidden, 2, 800);
    const pauses = [node, refused].map(async (watched) => {
      await news.pause(watched, { delayMs: 20_000 }, signal);
      ended.push(watched.name);
    });
    await clock.advance(5000);
    assert.deepEqual(ended, []);
    news.answered(pods);
    await clock.advance(0);
    assert.deepEqual(ended, ["node"]);
    await clock.advance(15_000);
    await Promise.all(pauses);
    assert.deepEqual(ended, ["node", "secret"]);
  });

  test("a watch with Retry-After waits, even if the server is back", async () => {
    const ended: string[] = [];
    const { signal } = new AbortController();
    for (const watched of [pods, node]) news.failed(watched, broken, 2, 5000);
    const pause = news.pause(node, { delayMs: 5000, askedMs: 3000 }, signal).then(() => ended.push("node"));
    news.answered(pods);
    await clock.advance(2999);
    assert.deepEqual(ended, []);
    await clock.advance(2001);
    await pause;
  });

  test("a server's restart and an expired version are normal; a server that expires everything is not", () => {
    news.failed(pods, broken, 1, 800);
    const expired = new ApiError(410, "Expired", "too old");
    for (const problems of [1, 2, 3]) news.failed(node, expired, problems, 800);
    assert.deepEqual(told, []);
    for (const problems of [4, 5, 6]) news.failed(node, expired, problems, 800);
    assert.deepEqual(told, [
      `warn: cannot list or watch at the API server {"what":"node","error":"too old","retryMs":800}`,
    ]);
  });
});
