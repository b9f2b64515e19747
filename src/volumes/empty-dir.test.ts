import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { memoryVolumeBytes } from "./empty-dir.ts";

const mebibyte = 1n << 20n;
const unlimited = podWith({ containers: [containerWith("a", undefined)] });
const limited = podWith({
  containers: [containerWith("a", undefined, { memory: "64Mi" }), containerWith("b", undefined, { memory: "64Mi" })],
});

test("a memory volume has the minimum of its limit, the pod's memory limit and node allocatable", () => {
  const allocatable = { memory: "1Gi" };
  assert.equal(memoryVolumeBytes(unlimited, undefined, allocatable), 1024n * mebibyte);
  assert.equal(memoryVolumeBytes(unlimited, "4Mi", allocatable), 4n * mebibyte);
  assert.equal(memoryVolumeBytes(unlimited, "4Gi", allocatable), 1024n * mebibyte);
  assert.equal(memoryVolumeBytes(limited, undefined, allocatable), 128n * mebibyte);
  assert.equal(memoryVolumeBytes(limited, "200Mi", allocatable), 128n * mebibyte);
});

test("a limit of zero is no limit, and one container without a limit means that the pod has none", () => {
  assert.equal(memoryVolumeBytes(unlimited, "0", {}), 0n);
  const half = podWith({ containers: [...limited.spec.containers, containerWith("c", undefined)] });
  assert.equal(memoryVolumeBytes(half, undefined, { memory: "1Gi" }), 1024n * mebibyte);
});
