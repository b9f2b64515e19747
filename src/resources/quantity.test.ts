import { fc } from "../../test/support/fast-check.ts";
import { vectorText } from "../../test/support/vectors.ts";
import { Quantity as QuantityField } from "../api/meta.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { milliQuantity, parseQuantity, type QuantityFormat, QuantityError, Quantity, quantityOf } from "./quantity.ts";

const cases: [text: string | number, value: bigint, milliValue: bigint, canonical: string][] = [
  ["0", 0n, 0n, "0"],
  ["2", 2n, 2000n, "2"],
  [0.5, 1n, 500n, "500m"],
  ["100m", 1n, 100n, "100m"],
  ["1500m", 2n, 1500n, "1500m"],
  ["0.1", 1n, 100n, "100m"],
  ["1u", 1n, 1n, "1u"],
  ["1n", 1n, 1n, "1n"],
  ["0.1n", 1n, 1n, "1n"],
  ["64Mi", 67_108_864n, 67_108_864_000n, "64Mi"],
  ["1.5Gi", 1_610_612_736n, 1_610_612_736_000n, "1536Mi"],
  ["0.5Ki", 512n, 512_000n, "512"],
  ["1023Ki", 1_047_552n, 1_047_552_000n, "1023Ki"],
  ["1024Mi", 1_073_741_824n, 1_073_741_824_000n, "1Gi"],
  ["1000", 1000n, 1_000_000n, "1k"],
  ["1G", 1_000_000_000n, 1_000_000_000_000n, "1G"],
  ["1E", 10n ** 18n, 2n ** 63n - 1n, "1E"],
  ["1Ei", 2n ** 60n, 2n ** 63n - 1n, "1Ei"],
  ["100Ei", 2n ** 63n - 1n, 2n ** 63n - 1n, "9223372036854775807"],
  ["1e3", 1000n, 1_000_000n, "1e3"],
  ["12E3", 12_000n, 12_000_000n, "12E3"],
  ["1e-3", 1n, 1n, "1e-3"],
  ["+1", 1n, 1000n, "+1"],
  ["-1.5", -2n, -1500n, "-1500m"],
  ["-2Ki", -2048n, -2_048_000n, "-2Ki"],
  [".5", 1n, 500n, "500m"],
  ["1.", 1n, 1000n, "1."],
  ["007", 7n, 7000n, "007"],
];

for (const [text, value, milliValue, canonical] of cases) {
  test(`${text} is ${value}, ${milliValue} thousandths, written ${canonical}`, () => {
    const quantity = parseQuantity(text);
    assert.equal(quantity.value(), value);
    assert.equal(quantity.milliValue(), milliValue);
    assert.equal(quantity.toString(), canonical);
  });
}

for (const text of [
  "",
  " 1",
  "1 Mi",
  "1mi",
  "1kb",
  "1KI",
  "1e",
  "1e1.5",
  "--1",
  "Ei",
  "1..2",
  "0x10",
  "1e1000",
  "1".repeat(200),
  "∞",
]) {
  test(`${JSON.stringify(text.slice(0, 20))} is rejected`, () => {
    assert.throws(() => parseQuantity(text), QuantityError);
  });
}

/**
 * Recorded from Kubernetes 1.36.2's Quantity.UnmarshalJSON: JSON, canonical text, value and milliValue; only the JSON
 * if invalid.
 */
const recorded = vectorText("quantities.tsv").trimEnd().split("\n");

test("quantities are parsed like Kubernetes' own decoder does", () => {
  const maxInt64 = 2n ** 63n - 1n;
  const read = (json: string): Quantity | undefined => {
    try {
      return parseQuantity(QuantityField.parse(JSON.parse(json)));
    } catch (error) {
      assert.ok(error instanceof QuantityError, json);
      return undefined;
    }
  };
  for (const row of recorded) {
    const [json = "", text, value, milliValue] = row.split("\t");
    const quantity = read(json);
    assert.equal(quantity?.toString(), text, row);
    // Upstream overflows beyond an int64, and when it rounds negative numbers; podwright saturates.
    if (quantity === undefined || quantity.nanos < 0n) continue;
    if (quantity.nanos < maxInt64 * 10n ** 9n) assert.equal(String(quantity.value()), value, row);
    if (quantity.nanos < maxInt64 * 10n ** 6n) assert.equal(String(quantity.milliValue()), milliValue, row);
  }
  assert.ok(recorded.length > 2900);
});

const format = fc.constantFrom<QuantityFormat>("BinarySI", "DecimalSI", "DecimalExponent");
const quantity = fc.oneof(
  fc.tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), format).map(([nanos, as]) => new Quantity(nanos, as)),
  fc
    .tuple(fc.bigInt({ min: -(2n ** 33n), max: 2n ** 33n }), format)
    .map(([units, as]) => quantityOf(units * 1024n, as)),
);

test("a formatted quantity is parsed as the same quantity", () => {
  fc.assert(
    fc.property(quantity, (written) => {
      const text = written.toString();
      const read = parseQuantity(text);
      // Parsing caps binary suffixes; no realistic text exceeds an int64 with one.
      const cap = (2n ** 63n - 1n) * 10n ** 9n;
      if (written.format === "BinarySI" && (written.nanos > cap || written.nanos < -cap)) return;
      assert.equal(read.compare(written), 0);
      // Integers without a suffix are parsed as decimal: 1000 bytes become 1k.
      if (written.format !== "BinarySI" || text.endsWith("i")) assert.equal(read.toString(), text);
    }),
  );
});

test("addition is exact and commutative", () => {
  fc.assert(
    fc.property(quantity, quantity, (a, b) => {
      assert.equal(a.add(b).nanos, a.nanos + b.nanos);
      assert.equal(a.add(b).compare(b.add(a)), 0);
    }),
  );
});

test("rounding never gives less than the amount", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 24n }), format, (nanos, as) => {
      const whole = new Quantity(nanos, as);
      assert.ok(whole.value() * 10n ** 9n >= nanos);
      assert.ok((whole.value() - 1n) * 10n ** 9n < nanos);
      assert.ok(whole.milliValue() * 10n ** 6n >= nanos);
    }),
  );
});

test("every text is either parsed or rejected with a QuantityError", () => {
  const text = fc.stringMatching(/^[+-]?[0-9]{0,30}(\.[0-9]{0,30})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,5})?$/);
  fc.assert(
    fc.property(fc.oneof(text, fc.string()), (written) => {
      try {
        assert.ok(parseQuantity(written) instanceof Quantity);
      } catch (error) {
        assert.ok(error instanceof QuantityError);
      }
    }),
  );
});

test("division by a divisor rounds up", () => {
  assert.equal(parseQuantity("1500m").dividedBy(parseQuantity("1")), 2n);
  assert.equal(parseQuantity("1500m").dividedBy(parseQuantity("1m")), 1500n);
  assert.equal(parseQuantity("65Mi").dividedBy(parseQuantity("32Mi")), 3n);
  assert.equal(milliQuantity(250n).toString(), "250m");
});
