import assert from "node:assert/strict";
import { test } from "node:test";
import { shortList } from "./short-list.ts";

test("a list names the first items, and how many there are beyond", () => {
  assert.equal(shortList([], 2, ", "), "");
  assert.equal(shortList(["a", "b"], 2, ", "), "a, b");
  assert.equal(shortList(["a", "b", "c"], 2, ", "), "a, b and 1 more");
  assert.equal(shortList(["a", "b", "c", "d"], 2, "; "), "a; b; and 2 more");
});
