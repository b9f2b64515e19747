import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeMessage, encodeCall, encodeMessage } from "./message.ts";

const call = {
  destination: "org.example.Service",
  path: "/org/example",
  interface: "org.example.Manager",
  member: "Do",
  signature: "sibtu",
  values: ["für", -3, true, 2n ** 60n, 7],
};

test("an encoded message is decoded again, with anything before and after it", () => {
  const bytes = encodeCall(5, call);
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(decodeMessage(bytes.subarray(0, length)), undefined);
  }
  const decoded = decodeMessage(Buffer.concat([bytes, Buffer.from("more")]));
  assert.equal(decoded?.length, bytes.length);
  const { kind, serial, path, member, values } = decoded?.message ?? {};
  assert.deepEqual([kind, serial, path, member, values], ["call", 5, call.path, "Do", call.values]);
});

test("a message is laid out as in the specification", () => {
  const bytes = encodeMessage(2, 1, [[5, "u", 9]], ["s", ["ab"]]);
  const header = [0x6c, 2, 0, 1, 7, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 5, 1, 0x75, 0, 9, 0, 0, 0];
  assert.deepEqual([...bytes], [...header, 2, 0, 0, 0, 0x61, 0x62, 0]);
});

test("big-endian messages are read as well: a service writes in its machine's order", () => {
  const header = [
    0x42, 2, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 15, 5, 1, 0x75, 0, 0, 0, 0, 9, 8, 1, 0x67, 0, 1, 0x75, 0, 0,
  ];
  const { message } = decodeMessage(Buffer.from([...header, 0, 0, 1, 2])) ?? {};
  assert.deepEqual([message?.replyTo, message?.values], [9, [258]]);
});

test("values of other types are omitted, with all that follow", () => {
  const fields = [[8, "g", "ai"]] as const;
  assert.equal(decodeMessage(encodeMessage(4, 1, fields, ["u", [0]]))?.message.values, undefined);
});

test("an invalid message is an error, never a wrong message or an endless wait", () => {
  assert.throws(() => decodeMessage(Buffer.from("HTTP/1.1 400 Bad Request")), /invalid message/u);
  const huge = encodeCall(1, call);
  huge.writeUInt32LE(2 ** 30, 4);
  assert.throws(() => decodeMessage(huge), /a message of \d+ bytes/u);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(200), (noise, at) => {
      const bytes = Buffer.from(encodeCall(1, call));
      Buffer.from(noise).copy(bytes, at);
      try {
        decodeMessage(bytes);
      } catch (error) {
        assert.ok(error instanceof Error);
      }
    }),
  );
});
