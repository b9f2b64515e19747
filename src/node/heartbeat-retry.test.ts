import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiDecodeError, ApiError } from "../api-client/api-error.ts";
import { DeadlineError } from "../base/deadline.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import { heartbeatRetryMs } from "./heartbeat-retry.ts";

const pauses = (error: unknown): unknown[] => [1, 2, 3, 4, 5].map((tries) => heartbeatRetryMs(error, tries));

test("a heartbeat that failed in passing is tried four times more, after pauses that grow", () => {
  for (const error of [new ApiError(500, "", ""), new ApiError(429, "", ""), new DeadlineError("PUT", 1)]) {
    assert.deepEqual(pauses(error), [100, 200, 400, 800, undefined]);
  }
});

test("a broken connection is reopened at once", () => {
  assert.deepEqual(pauses(new KubeConnectionError("reset")), [0, 100, 200, 400, undefined]);
});

test("a heartbeat that was refused, or is to wait, is not sent again before the next is due", () => {
  const refusals = [400, 401, 403, 404, 409, 410, 422].map((code) => new ApiError(code, "", ""));
  const asked = [429, 503].map((code) => new ApiError(code, "", "", 1000));
  for (const error of [...refusals, ...asked, new ApiDecodeError("html"), new Error("a defect")]) {
    assert.equal(heartbeatRetryMs(error, 1), undefined, String(error));
  }
});
