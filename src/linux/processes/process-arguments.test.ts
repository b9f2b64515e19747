import assert from "node:assert/strict";
import { test } from "node:test";
import { processArguments } from "./process-arguments.ts";

test("arguments end with a NUL each", () => {
  assert.deepEqual(processArguments("kubelet\0--node-labels=a b\0\0--v=2\0"), [
    "kubelet",
    "--node-labels=a b",
    "",
    "--v=2",
  ]);
  assert.deepEqual(processArguments("my program\0"), ["my program"]);
  assert.deepEqual(processArguments(""), []);
});

test("the words of a title that a process has set are its arguments", () => {
  assert.deepEqual(processArguments(`kubelet --config /etc/k.yaml${"\0".repeat(40)}`), [
    "kubelet",
    "--config",
    "/etc/k.yaml",
  ]);
  assert.deepEqual(processArguments("kubelet\0\0\0"), ["kubelet"]);
});
