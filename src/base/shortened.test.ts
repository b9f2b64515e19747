import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { shortened } from "./shortened.ts";

test("a long text is cut between words", () => {
  const text = "the driver could not mount the volume because its server refused the connection from this node";
  assert.equal(shortened(text, 20, 24), "the driver could not … from this node");
  assert.equal(shortened(text, 24, 24), "the driver could not … from this node");
  assert.equal(shortened(text, 27, 27), "the driver could not mount … connection from this node");
});

test("a long word is cut anywhere, and a text that is hardly too long not at all", () => {
  assert.equal(shortened("x".repeat(50), 10, 10), `${"x".repeat(10)} … ${"x".repeat(10)}`);
  assert.equal(shortened("a b".repeat(8), 10, 11), "a b".repeat(8));
});

test("what is left is a beginning and an end of the text, and no longer than allowed", () => {
  fc.assert(
    fc.property(
      fc.string({ maxLength: 120 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 40 }),
      (text, begin, end) => {
        const short = shortened(text, begin, end);
        assert.ok(short === text || short.length <= begin + 3 + end);
        if (short === text) return;
        const [head, tail] = [short.slice(0, short.indexOf(" … ")), short.slice(short.lastIndexOf(" … ") + 3)];
        assert.ok(text.startsWith(head) && text.endsWith(tail));
      },
    ),
  );
});
