import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { ApiError } from "../api-client/api-error.ts";
import { DeadlineError } from "../base/deadline.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import { retried } from "./review-retry.ts";

/** When the attempts began, and how they ended. @param uniform the random number of each pause */
async function attemptsOf(error: Error, uniform = 0, advanceMs = 60_000): Promise<readonly number[]> {
  const clock = new ManualClock(0);
  const began: number[] = [];
  const asked = retried({ clock, random: { uniform: () => uniform } }, new AbortController().signal, async () => {
    began.push(clock.monotonic());
    throw error;
  });
  const failed = assert.rejects(asked, error);
  await clock.advance(advanceMs);
  await failed;
  return began;
}

const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const once = [0];
const five = [0, 500, 1250, 2375, 4062.5];

describe("a review", () => {
  test("is asked five times, with growing pauses, that differ among nodes", async () => {
    const busy = new ApiError(429, "TooManyRequests", "busy");
    assert.deepEqual(await attemptsOf(busy), five);
    assert.deepEqual(await attemptsOf(busy, 0.5), [0, 550, 1375, 2612.5, 4468.75]);
  });

  test("is asked again only after errors that pass", async () => {
    const rows: readonly [Error, readonly number[]][] = [
      [new ApiError(500, "InternalError", "etcd is away"), five],
      [new ApiError(504, "Timeout", "too slow"), five],
      [new ApiError(502, "", "a proxy's"), five],
      [new ApiError(503, "ServiceUnavailable", "away"), once],
      [new ApiError(403, "Forbidden", "it may not review"), once],
      [new KubeConnectionError("lost", { cause: reset }), five],
      [new KubeConnectionError("lost", { cause: new Error("no data received for 4 s") }), five],
      [new KubeConnectionError("away", { cause: refused }), once],
      [new KubeConnectionError("away", { cause: new DeadlineError("a connection", 10_000) }), once],
      [new KubeConnectionError("no credentials"), once],
      [new DeadlineError("POST /apis", 30_000), once],
    ];
    for (const [error, expected] of rows) assert.deepEqual(await attemptsOf(error), expected, error.message);
  });

  test("waits as long as the server requests, while the client has reason to", async () => {
    assert.deepEqual(await attemptsOf(new ApiError(503, "", "away", 2000)), [0, 2000, 4000, 6000, 8000]);
    assert.deepEqual(await attemptsOf(new ApiError(429, "", "busy", 20_000)), [0, 20_000]);
    assert.deepEqual(await attemptsOf(new ApiError(429, "", "busy", 60_000)), once);
  });

  test("is not asked again for a client that has left", async () => {
    const clock = new ManualClock(0);
    const client = new AbortController();
    let attempts = 0;
    const asked = retried({ clock, random: { uniform: () => 0 } }, client.signal, async () => {
      attempts++;
      throw new ApiError(500, "InternalError", "etcd is away");
    });
    const failed = assert.rejects(asked, /^Error: gone$/);
    await clock.advance(400);
    client.abort(new Error("gone"));
    await failed;
    assert.deepEqual([attempts, clock.waits], [1, []]);
  });
});
