import assert from "node:assert/strict";
import { test } from "node:test";
import { mergePatch, valueAt, withoutPath, withValueAt } from "./json.ts";

/** RFC 7386, appendix A: target, patch, result. */
const examples: readonly (readonly [target: unknown, patch: unknown, result: unknown])[] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

test("a merge patch gives the results of RFC 7386, and changes neither argument", () => {
  for (const [target, patch, result] of examples) {
    const before = JSON.stringify([target, patch]);
    assert.deepEqual(mergePatch(target, patch), result);
    assert.equal(JSON.stringify([target, patch]), before);
  }
});

test("values are read, replaced and removed by their path", () => {
  const root = { a: { b: 1, c: [{ d: 2 }] }, e: null };
  assert.equal(valueAt(root, "a.b"), 1);
  assert.equal(valueAt(root, "a.x.y"), undefined);
  assert.equal(valueAt(root, "constructor"), undefined);
  assert.deepEqual(withValueAt(root, "a.b", 3), { a: { b: 3, c: [{ d: 2 }] }, e: null });
  assert.deepEqual(withValueAt({}, "x.y", 1), { x: { y: 1 } });
  assert.deepEqual(withoutPath(root, ["a", "b"]), { a: { c: [{ d: 2 }] }, e: null });
  assert.deepEqual(withoutPath(root, ["a", "c", "0", "d"]), root, "what is below a list stays");
});
