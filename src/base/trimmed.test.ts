import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { trimmed, trimmedEnd } from "./trimmed.ts";

test("a text loses the characters at its ends, and none within", () => {
  assert.equal(trimmed("//a//b/", "/"), "a//b");
  assert.equal(trimmed(" \ta\t", "\t "), "a");
  assert.equal(trimmed("///", "/"), "");
  assert.equal(trimmed("", "/"), "");
  assert.equal(trimmedEnd("//a//", "/"), "//a");
});

test("a text is trimmed as a regular expression trims it", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", " ", "\t", "\n") }), (text) => {
      assert.equal(trimmed(text, " \t"), text.replaceAll(/^[ \t]+|[ \t]+$/g, ""));
      assert.equal(trimmedEnd(text, " \t"), text.replace(/[ \t]+$/, ""));
    }),
  );
});

test("a long run within a text delays nothing", () => {
  const text = `a${" ".repeat(500_000)}b`;
  assert.equal(trimmed(` ${text} `, " "), text);
});
