import assert from "node:assert/strict";
import { test } from "node:test";
import { originOf } from "./pod-words.ts";

test("a pod of the cluster has no manifest on the node", () => {
  assert.equal(originOf("api"), "comes from the API server");
  assert.equal(originOf("file"), "comes from a file manifest");
});
