import assert from "node:assert/strict";
import { test } from "node:test";
import { kubeletHealth } from "./health.ts";

function plegAt(now: number, lastRelistMs: number | undefined): { readonly ok: boolean; readonly detail: string } {
  const pleg = { beganMs: 1000, lastRelistMs, evented: true, discarded: 0 };
  const [check] = kubeletHealth(now, pleg, [], { workers: 0, probing: 0 });
  return check ?? assert.fail("there is no check");
}

test("a runtime that was not listed yet is no reason for a node not to be ready, until listing has taken too long", () => {
  assert.equal(plegAt(2000, undefined).ok, true);
  assert.match(plegAt(2000, undefined).detail, /^never relisted/);
  assert.equal(plegAt(182_000, undefined).ok, false);
});

test("a runtime that was not listed for three minutes is not well", () => {
  assert.equal(plegAt(200_000, 150_000).ok, true);
  assert.equal(plegAt(331_000, 150_000).ok, false);
});
