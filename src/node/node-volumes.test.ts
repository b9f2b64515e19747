import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeVolumes } from "./node-volumes.ts";

test("a volume that comes back into use while a status without it is being written is written again", () => {
  const volumes = new NodeVolumes();
  volumes.use("v", "a pod");
  volumes.seen({ volumesInUse: ["v"], volumesAttached: [{ name: "v" }] });
  assert.equal(volumes.isWritten("v"), true);
  volumes.release("v", "a pod");
  // From here on a write without it is in progress.
  const first = volumes.unsettled;
  assert.equal(volumes.mustWrite(first), false);
  volumes.use("v", "another pod");
  assert.equal(volumes.isWritten("v"), false, "it may be gone from the Node by now");
  const second = volumes.unsettled;
  assert.equal(volumes.mustWrite(second), true, "though the Node has it, as far as is known");
  volumes.settle(second);
  assert.equal(volumes.isWritten("v"), true);
  assert.equal(volumes.unsettled.size, 0);
});

test("a write that started before a volume left use again settles nothing", () => {
  const volumes = new NodeVolumes();
  volumes.use("v", "a pod");
  volumes.seen({ volumesInUse: ["v"] });
  volumes.release("v", "a pod");
  const earlier = volumes.unsettled;
  volumes.use("v", "another pod");
  volumes.release("v", "another pod");
  volumes.settle(earlier);
  volumes.use("v", "a third pod");
  assert.equal(volumes.isWritten("v"), false);
});

test("a volume that only an earlier run used is not in use until the Node was written with it", () => {
  const volumes = new NodeVolumes();
  volumes.seen({ volumesInUse: ["v"] });
  volumes.complete();
  // From here on a write without it is in progress.
  const first = volumes.unsettled;
  volumes.use("v", "a pod");
  assert.equal(volumes.isWritten("v"), false, "it may be gone from the Node by now");
  volumes.settle(first);
  volumes.release("v", "a pod");
  volumes.settle(volumes.unsettled);
  // A write of the earlier run arrives late.
  volumes.seen({ volumesInUse: ["v"] });
  assert.equal(volumes.unsettled.has("v"), true);
});

test("as long as a volume on disk is unknown, what an earlier run had in use stays listed, whatever this run does", () => {
  const volumes = new NodeVolumes();
  volumes.seen({ volumesInUse: ["a", "b"] });
  volumes.use("a", "u1");
  volumes.use("c", "u1");
  volumes.completeKnown();
  assert.deepEqual(volumes.used, ["a", "b", "c"]);
  volumes.releaseAll("u1");
  assert.deepEqual(volumes.used, ["a", "b"]);
  volumes.seen({ volumesInUse: ["a", "b"] });
  assert.deepEqual(volumes.used, ["a", "b"]);
  volumes.complete();
  assert.deepEqual(volumes.used, []);
});
