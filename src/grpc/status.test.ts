import assert from "node:assert/strict";
import { test } from "node:test";
import { statusError } from "./status.ts";

test("a status is read with its message, and an invalid one is an error of this side", () => {
  assert.equal(
    statusError(
      new Map([
        ["grpc-status", "0"],
        ["grpc-message", "whatever"],
      ]),
    ),
    undefined,
  );
  for (const [fields, code, message, isStatus] of [
    [
      { "grpc-status": "5", "grpc-message": "no such container: %22%C5%BF%22%0A100%25" },
      "NotFound",
      'no such container: "ſ"\n100%',
      true,
    ],
    [{ "grpc-status": "16" }, "Unauthenticated", "Unauthenticated", true],
    [{ "grpc-status": "2", "grpc-message": "100% of it" }, "Unknown", "100% of it", true],
    [{ "grpc-status": "17" }, "Internal", 'the response has grpc-status "17"', false],
    [{ "grpc-status": "-1" }, "Internal", 'the response has grpc-status "-1"', false],
    [{ "grpc-status": "" }, "Internal", 'the response has grpc-status ""', false],
    [{}, "Internal", "the response has no grpc-status", false],
  ] as const) {
    const error = statusError(new Map(Object.entries(fields)));
    assert.deepEqual([error?.code, error?.message, error?.isStatus], [code, message, isStatus], JSON.stringify(fields));
  }
});
