import assert from "node:assert/strict";
import { test } from "node:test";
import { apiErrorOf, askedPauseMs } from "./api-error.ts";

test("a requested pause is in seconds, a date of the server's clock, or in the response", () => {
  const body = { kind: "Status", reason: "TooManyRequests", code: 429, details: { retryAfterSeconds: 7 } };
  const pauseMs = (headers: Readonly<Record<string, string>>, answer: unknown = body): number =>
    askedPauseMs(apiErrorOf("GET /", { status: 429, headers }, answer));
  assert.equal(pauseMs({ "retry-after": "3" }), 3000);
  const date = "Fri, 20 Nov 2026 14:02:00 GMT";
  assert.equal(pauseMs({ "retry-after": "Fri, 20 Nov 2026 14:02:20 GMT", date }), 20_000);
  assert.equal(pauseMs({ "retry-after": "Fri, 20 Nov 2026 14:01:20 GMT", date }), 0, "it is over");
  assert.equal(pauseMs({ "retry-after": "Fri, 20 Nov 2026 14:02:20 GMT" }), 7000, "nobody knows the server's time");
  assert.equal(pauseMs({ "retry-after": "soon", date }), 7000);
  assert.equal(pauseMs({}), 7000);
  assert.equal(pauseMs({}, "busy"), 0);
});
