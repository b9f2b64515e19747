import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidArgumentError } from "commander";
import { parseDuration, parseEndpoint, parseSeconds, parseTail } from "./options.ts";

test("durations are parsed in Kubernetes' notation", () => {
  assert.deepEqual(
    ["60s", "1h30m", "500ms", "1.5s", "2d", "10", "0"].map(parseDuration),
    [60_000, 5_400_000, 500, 1500, 172_800_000, 10_000, 0],
  );
  for (const text of ["", "soon", "-1s", "5 m", "s", "1e9", "9".repeat(20)]) {
    assert.throws(() => parseDuration(text), InvalidArgumentError, text);
  }
});

test("a grace period is whole seconds", () => {
  assert.deepEqual(["0", "10", "1m", "1500ms"].map(parseSeconds), [0, 10, 60, 2]);
  assert.throws(() => parseSeconds("100000d"), InvalidArgumentError);
});

test("the tail is a number of lines, or all", () => {
  assert.deepEqual(["0", "20", "all", "-1"].map(parseTail), [0, 20, "all", "all"]);
  for (const text of ["", "x", "-2", "1.5"]) assert.throws(() => parseTail(text), InvalidArgumentError, text);
});

test("a CRI endpoint is a Unix socket", () => {
  assert.equal(parseEndpoint("unix:///run/crio/crio.sock"), "unix:///run/crio/crio.sock");
  assert.equal(parseEndpoint("/run/crio/crio.sock"), "unix:///run/crio/crio.sock");
  for (const text of ["", "unix://", "unix://relative", "tcp://127.0.0.1:1", "relative"]) {
    assert.throws(() => parseEndpoint(text), InvalidArgumentError, text);
  }
});
