import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { nestedMountPoints } from "./nested-mount-points.ts";

function nested(...mounts: [name: string, mountPath: string][]): string[] {
  const volumeMounts = mounts.map(([name, mountPath]) => ({ name, mountPath }));
  return nestedMountPoints(podWith({ containers: [{ name: "c", volumeMounts }] }), "v");
}

test("a mount below the volume's own needs a directory in it", () => {
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir/nested/deep"]), ["nested/deep"]);
  assert.deepEqual(nested(["v", "/dir/"], ["w", "/dir//x/./y/"]), ["x/y"]);
});

test("a mount below another mount, beside the volume or above it needs none", () => {
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir/nested"], ["x", "/dir/nested/double"]), ["nested"]);
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir2"], ["x", "/"], ["y", "/dir/nested-vol"]), ["nested-vol"]);
});

test("a path with `..` never leads out of the volume", () => {
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir/../etc"]), []);
});
