import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalIp, onePerFamily } from "./ip.ts";

test("one address of each family is left, the primary family's first", () => {
  const all = ["fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2"];
  assert.deepEqual(onePerFamily(all, "192.0.2.1"), ["10.0.0.1", "fd00::1"]);
  assert.deepEqual(onePerFamily(all, "fd00::ff"), ["fd00::1", "10.0.0.1"]);
  assert.deepEqual(onePerFamily(all, undefined), ["10.0.0.1", "fd00::1"]);
  assert.deepEqual(onePerFamily(["fd00::1"], "192.0.2.1"), ["fd00::1"]);
  assert.deepEqual(onePerFamily([], undefined), []);
});

test("equal addresses have equal texts", () => {
  assert.equal(canonicalIp("::FFFF:192.0.2.1"), "192.0.2.1");
  assert.deepEqual(["FD00:0:0::0001", "10.0.0.1", "odd:text"].map(canonicalIp), ["fd00::1", "10.0.0.1", "odd:text"]);
  assert.deepEqual(onePerFamily(["FD00:0:0::0001"], undefined), ["fd00::1"]);
});
