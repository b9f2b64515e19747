import { fc } from "../../../test/support/fast-check.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { expandParts, joinParts } from "./expansion.ts";

function expand(text: string, lookup: (name: string) => string | undefined): string {
  return expandParts(text, lookup).join("");
}

const values = new Map([
  ["A", "1"],
  ["B", "$(A)"],
  ["EMPTY", ""],
  ["odd name", "x"],
]);

/** The table of upstream's design document, and what it leaves open. */
const cases: [string, string][] = [
  ["$(A)", "1"],
  ["x$(A)y$(A)", "x1y1"],
  ["$$(A)", "$(A)"],
  ["$$$(A)", "$1"],
  ["$$$$(A)", "$$(A)"],
  ["$(B)", "$(A)"],
  ["$(EMPTY)", ""],
  ["$(MISSING)", "$(MISSING)"],
  ["$(A$(A))", "$(A$(A))"],
  ["$(odd name)", "x"],
  ["$()", "$()"],
  ["$(A", "$(A"],
  ["$(", "$("],
  ["$A $ $", "$A $ $"],
  ["$$", "$"],
  ["$((A))", "$((A))"],
  ["", ""],
];

for (const [text, expected] of cases) {
  test(`${JSON.stringify(text)} becomes ${JSON.stringify(expected)}`, () => {
    assert.equal(
      expand(text, (name) => values.get(name)),
      expected,
    );
  });
}

test("a text without dollars stays unchanged", () => {
  fc.assert(
    fc.property(fc.string(), (text) => expand(text.replaceAll("$", ""), () => "x") === text.replaceAll("$", "")),
  );
});

test("doubling each dollar protects any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("$", "(", ")", "A") }), (text) => {
      assert.equal(
        expand(text.replaceAll("$", "$$$$"), () => "x"),
        text,
      );
    }),
  );
});

test("values need not be texts", () => {
  const bytes = new Uint8Array([0xff]);
  assert.deepEqual(
    expandParts("a$(X)b", () => bytes),
    ["a", bytes, "b"],
  );
  assert.deepEqual(joinParts(["a", bytes, "ä"]), new Uint8Array([0x61, 0xff, 0xc3, 0xa4]));
});

test("many unclosed references take linear time", () => {
  const hostile = "$(".repeat(1_000_000);
  assert.equal(
    expand(hostile, () => "x"),
    hostile,
  );
});
