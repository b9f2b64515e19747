import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { encodeField, HpackDecoder } from "./hpack.ts";
import { huffmanCodes } from "./hpack-tables.ts";
import { HttpSyntaxError } from "./syntax-error.ts";

const maxListBytes = 64 * 1024;
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

describe("the Huffman code", () => {
  test("has a code for every byte and for the end, and none is left over", () => {
    const bytes = huffmanCodes.flatMap((codes) => codes.bytes);
    assert.deepEqual(
      bytes.toSorted((one, other) => one - other),
      Array.from({ length: 256 }, (_, byte) => byte),
    );
    const last = huffmanCodes.at(-1);
    // Kraft's sum: the longest codes are all used except the end's, which is all ones.
    assert.equal((last?.first ?? 0) + (last?.bytes.length ?? 0), 2 ** 30 - 1);
  });
});

// RFC 7541, appendix C.
describe("a block of headers", () => {
  test("decodes the three responses of C.5, with evictions from the table", () => {
    const decoder = new HpackDecoder(maxListBytes);
    const first = decoder.decode(
      hex(
        "3fe1 01 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120" +
          "474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
      ),
    );
    assert.deepEqual(
      [...first],
      [
        [":status", "302"],
        ["cache-control", "private"],
        ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
        ["location", "https://www.example.com"],
      ],
    );
    const second = decoder.decode(hex("4803 3330 37c1 c0bf"));
    assert.equal(second.get(":status"), "307");
    assert.equal(second.get("location"), "https://www.example.com");
  });

  test("decodes the responses of C.6, compressed", () => {
    const decoder = new HpackDecoder(maxListBytes);
    const fields = decoder.decode(
      hex(
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7" +
          "8f0b 97c8 e9ae 82ae 43d3",
      ),
    );
    assert.deepEqual(
      [...fields.values()],
      ["302", "private", "Mon, 21 Oct 2013 20:13:21 GMT", "https://www.example.com"],
    );
    assert.deepEqual(
      [...decoder.decode(hex("4883 640e ffc1 c0bf")).values()],
      ["307", "private", "Mon, 21 Oct 2013 20:13:21 GMT", "https://www.example.com"],
    );
  });

  test("with table size zero keeps no entry", () => {
    const decoder = new HpackDecoder(maxListBytes);
    decoder.decode(encodeAdded("kept", "no"));
    assert.deepEqual([...decoder.decode(hex("be"))], [["kept", "no"]]);
    decoder.decode(hex("20"));
    assert.throws(() => decoder.decode(hex("be")), HttpSyntaxError);
    decoder.decode(encodeAdded("kept", "no"));
    assert.throws(() => decoder.decode(hex("be")), HttpSyntaxError);
  });

  const broken: readonly (readonly [name: string, block: string])[] = [
    ["index 0", "80"],
    ["an index beyond both tables", "be"],
    ["a number without its end", "ff"],
    ["a number that never ends", "ff ff ff ff ff ff ff ff ff"],
    ["a name that is cut off", "00 05 61 62"],
    ["no value", "00 01 61"],
    ["a value that is cut off", "00 01 61 7f ff ff"],
    ["a compressed end", "00 01 61 84 ff ff ff ff"],
    ["compressed text that is filled with zeros", "00 01 61 81 18"],
    ["a compressed byte too many", "00 01 61 82 1f ff"],
    ["a table that is larger than allowed", "3f e2 1f"],
    ["a change of the table after a field", "88 20"],
    ["three changes of the table", "20 20 20"],
  ];
  for (const [name, block] of broken) {
    test(`with ${name} is rejected`, () =>
      assert.throws(() => new HpackDecoder(maxListBytes).decode(hex(block)), HttpSyntaxError));
  }

  test("is decoded or rejected, whatever it holds", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 3 }), (blocks) => {
        const decoder = new HpackDecoder(maxListBytes);
        try {
          for (const block of blocks) decoder.decode(Buffer.from(block));
        } catch (error) {
          assert.ok(error instanceof HttpSyntaxError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("decodes what was encoded", () => {
    const text = fc.string({
      unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
      maxLength: 400,
    });
    fc.assert(
      fc.property(text, text, (name, value) => {
        assert.deepEqual([...new HpackDecoder(maxListBytes).decode(encodeField(name, value))], [[name, value]]);
      }),
    );
  });
});

/** A literal that is added to the dynamic table. */
function encodeAdded(name: string, value: string): Buffer {
  const field = encodeField(name, value);
  field[0] = 0x40;
  return field;
}

test("a few bytes that stand for many are refused", () => {
  const decoder = new HpackDecoder(maxListBytes);
  const value = Buffer.alloc(4000, "x");
  const added = Buffer.concat([Buffer.from([0x40, 1]), Buffer.from("a"), Buffer.from([0x7f, 0xa1, 0x1e]), value]);
  assert.equal(decoder.decode(added).get("a")?.length, 4000);
  assert.equal(decoder.decode(Buffer.alloc(2, 0xbe)).get("a")?.length, 2 * 4000 + 2);
  assert.throws(() => decoder.decode(Buffer.alloc(1000, 0xbe)), /exceed 65536 bytes/);
});

test("what does not fit into bytes is not sent", () => {
  assert.throws(() => encodeField("a", "\u010a"), TypeError);
});
