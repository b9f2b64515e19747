import assert from "node:assert/strict";
import { test } from "node:test";
import { subscriptOf } from "./subscript.ts";

test("a field path is split at its first subscript", () => {
  assert.deepEqual(subscriptOf("metadata.labels['app']"), { path: "metadata.labels", key: "app" });
  assert.deepEqual(subscriptOf("metadata.labels['']"), { path: "metadata.labels", key: "" });
  assert.deepEqual(subscriptOf("a['b['c\n']']"), { path: "a", key: "b['c\n']" });
  for (const path of ["metadata.labels", "a['b", "a['b'] ", "['a']", "a[']", "a']", ""]) {
    assert.equal(subscriptOf(path), undefined, path);
  }
});

test("a path of many subscripts that do not end delays nothing", () => {
  assert.equal(subscriptOf(`a${"['".repeat(250_000)}`), undefined);
});
