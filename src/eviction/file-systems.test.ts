import assert from "node:assert/strict";
import { test } from "node:test";
import { thresholdOf } from "../../test/support/eviction.ts";
import { type FileSystems, fileSystemsOf, nodeGarbage, withContainerFs } from "./file-systems.ts";
import type { Signal } from "./thresholds.ts";

test("the location of images and containers follows from device numbers", () => {
  assert.equal(fileSystemsOf({ node: 1, images: 1, containers: 1 }), "one");
  assert.equal(fileSystemsOf({ node: 1, images: 2, containers: 2 }), "imagefs");
  assert.equal(fileSystemsOf({ node: 1, images: 2, containers: 1 }), "split");
  for (const unknown of ["node", "images", "containers"]) {
    assert.equal(fileSystemsOf({ node: 1, images: 1, containers: 1, [unknown]: undefined }), undefined);
  }
});

test("containerfs has the thresholds of its file system, soft ones with their grace period", () => {
  const thresholds = [
    thresholdOf("memory.available", "1Mi"),
    thresholdOf("nodefs.available", 0.1),
    thresholdOf("nodefs.inodesFree", 0.05, 30_000),
    thresholdOf("imagefs.available", 0.15),
  ];
  const derived = (fileSystems: FileSystems): unknown[] =>
    withContainerFs(thresholds, fileSystems)
      .slice(thresholds.length)
      .map(({ signal, value, graceMs }) => [signal, "part" in value && value.part, graceMs]);
  const ofNode = [
    ["containerfs.available", 0.1, 0],
    ["containerfs.inodesFree", 0.05, 30_000],
  ];
  assert.deepEqual(derived("one"), ofNode);
  assert.deepEqual(derived("split"), ofNode);
  assert.deepEqual(derived("imagefs"), [["containerfs.available", 0.15, 0]]);
});

test("node-level reclaim concerns the full file system", () => {
  const table = (fileSystems: FileSystems): string[] =>
    (["nodefs.available", "imagefs.inodesFree", "containerfs.available", "memory.available"] satisfies Signal[]).map(
      (signal) => nodeGarbage(signal, fileSystems).join(" "),
    );
  assert.deepEqual(table("one"), ["containers images", "containers images", "containers images", ""]);
  assert.deepEqual(table("imagefs"), ["", "containers images", "containers images", ""]);
  assert.deepEqual(table("split"), ["containers", "images", "containers", ""]);
});
