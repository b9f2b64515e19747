import assert from "node:assert/strict";
import { test } from "node:test";
import { fnv128a, fnv32a, fnv64a } from "./fnv.ts";

test("FNV-1a gives the published values of the empty text, a and foobar", () => {
  assert.equal(fnv32a(""), 0x811c9dc5);
  assert.equal(fnv32a("a"), 0xe40c292c);
  assert.equal(fnv32a("foobar"), 0xbf9cf968);
  assert.equal(fnv64a(""), 0xcbf29ce484222325n);
  assert.equal(fnv64a("foobar"), 0x85944171f73967e8n);
  assert.equal(fnv128a(""), 0x6c62272e07bb014262b821756295c58dn);
  assert.equal(fnv128a("a"), 0xd228cb696f1a8caf78912b704e4a8964n);
});

test("text is hashed as UTF-8", () => {
  assert.equal(fnv32a("é"), fnv32a(Uint8Array.of(0xc3, 0xa9)));
});
