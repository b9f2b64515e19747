import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { acceptKey, binaryMessage, closeMessage, WebSocketDecoder, WebSocketError } from "./websocket-frames.ts";

/** A client's frame. */
function frame(first: number, payload: Uint8Array, mask = Buffer.from([1, 2, 3, 4])): Buffer {
  const { length } = payload;
  const size = length < 126 ? Buffer.from([0x80 | length]) : Buffer.from([0x80 | 126, length >> 8, length & 0xff]);
  return Buffer.concat([Buffer.from([first]), size, mask, payload.map((byte, index) => byte ^ (mask[index & 3] ?? 0))]);
}

/** Decodes messages and control frames from pieces of any size. */
function decoded(bytes: Buffer, sizes: readonly number[]): string[] {
  const decoder = new WebSocketDecoder();
  const found: string[] = [];
  let message = "";
  let offset = 0;
  for (const size of [...sizes, bytes.length]) {
    for (const part of decoder.push(bytes.subarray(offset, offset + size))) {
      if (part.kind !== "data") {
        found.push(`${part.kind} ${part.bytes.toString()}`);
        continue;
      }
      message = (part.first ? "" : message) + part.bytes.toString();
      if (part.last) found.push(message);
    }
    offset += size;
  }
  return found;
}

test("messages are the same for any fragmentation of bytes and frames", () => {
  const long = "x".repeat(300);
  const bytes = Buffer.concat([
    frame(0x82, Buffer.from("one")),
    frame(0x02, Buffer.from("two ")),
    frame(0x89, Buffer.from("are you there")),
    frame(0x00, Buffer.from("")),
    frame(0x80, Buffer.from("parts")),
    frame(0x82, Buffer.from(long)),
    frame(0x82, Buffer.from("")),
    frame(0x88, Buffer.from("")),
  ]);
  const expected = ["one", "ping are you there", "two parts", long, "", "close "];
  assert.deepEqual(decoded(bytes, []), expected);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 11 }), { maxLength: 60 }), (sizes) => {
      assert.deepEqual(decoded(bytes, sizes), expected);
    }),
  );
});

test("invalid client frames are rejected", () => {
  const cases: Readonly<Record<string, Buffer>> = {
    "a frame without a mask": Buffer.from([0x82, 1, 65]),
    "an extension": frame(0xc2, Buffer.from("a")),
    "a frame of kind 3": frame(0x83, Buffer.from("a")),
    "a frame of kind 11": frame(0x8b, Buffer.from("a")),
    "fragmented control frame": frame(0x09, Buffer.from("a")),
    "a long or fragmented control frame": frame(0x89, Buffer.alloc(126)),
    "fragments out of order": frame(0x80, Buffer.from("a")),
    "longer than 2^53 bytes": Buffer.from([0x82, 0xff, ...Buffer.alloc(8, 0xff), 1, 2, 3, 4]),
  };
  for (const [what, bytes] of Object.entries(cases)) {
    assert.throws(
      () => decoded(bytes, []),
      (error) => error instanceof WebSocketError && error.message.includes(what),
    );
  }
  assert.throws(() => decoded(Buffer.concat([frame(2, Buffer.of(1)), frame(0x82, Buffer.of(1))]), []), /order/);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      try {
        decoded(Buffer.from(bytes), []);
      } catch (error) {
        assert.ok(error instanceof WebSocketError);
      }
    }),
  );
});

test("an endless message is passed on in pieces and not buffered", () => {
  const decoder = new WebSocketDecoder();
  const head = Buffer.from([0x82, 0xff, 0, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
  assert.deepEqual([...decoder.push(head)], []);
  const [piece] = [...decoder.push(Buffer.alloc(1000))];
  assert.deepEqual(piece, { kind: "data", bytes: Buffer.alloc(1000), first: true, last: false });
});

test("a server's frames are as in RFC 6455", () => {
  assert.equal(binaryMessage(Buffer.from("ab"), 1).toString("hex"), "8203016162");
  assert.equal(binaryMessage(Buffer.alloc(200)).subarray(0, 4).toString("hex"), "827e00c8");
  assert.equal(binaryMessage(Buffer.alloc(70_000)).subarray(0, 10).toString("hex"), "827f0000000000011170");
  assert.equal(closeMessage(1000).toString("hex"), "880203e8");
  // The example of RFC 6455, section 1.3.
  assert.equal(acceptKey("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
});
