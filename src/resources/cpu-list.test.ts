import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCpuList } from "./cpu-list.ts";

test("a list contains single processors and ranges, each processor once", () => {
  assert.deepEqual([...parseCpuList("0-2,8,1")], [0, 1, 2, 8]);
  assert.deepEqual([...parseCpuList("3-3")], [3]);
  assert.deepEqual([...parseCpuList("")], []);
});

test("reversed ranges and malformed lists are errors", () => {
  assert.throws(() => parseCpuList("0,3-1"), { message: 'invalid range "3-1" (3 > 1)' });
  for (const bad of ["a", "1,", "-1", "1-2-3", " 1", "9999999"]) {
    assert.throws(() => parseCpuList(bad), { message: "expected a list such as 0-3,8" }, bad);
  }
});
