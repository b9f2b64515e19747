import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { frame, Frames } from "./frames.ts";
import { RpcError } from "../ports/rpc.ts";

const limit = 64;

test("messages survive fragments of any size", () => {
  const messages = fc.array(fc.uint8Array({ maxLength: limit }), { maxLength: 6 });
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(messages, sizes, (sent, pieceSizes) => {
      const wire = Buffer.concat(sent.map((message) => frame(message, limit)));
      const frames = new Frames(limit);
      const got: Uint8Array[] = [];
      for (let at = 0, index = 0; at < wire.length; index++) {
        const size = pieceSizes[index % pieceSizes.length] ?? 1;
        frames.add(wire.subarray(at, at + size));
        at += size;
        for (let message = frames.take(); message !== undefined; message = frames.take()) got.push(message);
      }
      assert.deepEqual(
        got.map((message) => [...message]),
        sent.map((message) => [...message]),
      );
      assert.ok(frames.isEmpty);
    }),
  );
});

test("an oversized message is rejected by its length alone, in both directions", () => {
  const isExhausted = (error: unknown): boolean => error instanceof RpcError && error.code === "ResourceExhausted";
  assert.throws(() => frame(new Uint8Array(limit + 1), limit), isExhausted);
  const frames = new Frames(limit);
  frames.add(Buffer.from([0, 0, 0]));
  assert.throws(() => frames.add(Buffer.from([0, limit + 1])), isExhausted);
});

test("a compressed message is rejected", () => {
  assert.throws(() => new Frames(limit).add(Buffer.from([1, 0, 0, 0, 0])), /compressed/);
});
