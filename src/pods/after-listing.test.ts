import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { AfterListing } from "./after-listing.ts";
import type { PodChange } from "./pod-change.ts";

const change = (uid: string): PodChange => ({
  op: "add",
  pod: podWith({ containers: [] }, { uid }),
  cause: { code: "ManifestFound", message: "wanted at the start" },
});

function afterListing(running: readonly string[]) {
  const seen: { readonly uid: string; readonly isBusy: boolean }[] = [];
  const held = new AfterListing({
    pleg: { firstListing: Promise.resolve(), isListed: (uid) => running.includes(uid) },
    knowsAll: () => false,
    moreToCome: () => false,
    next: ({ pod }) => void seen.push({ uid: pod.metadata.uid, isBusy: held.isBusy }),
  });
  return { held, seen };
}

test("of what a source says at one time, that which runs comes first", async () => {
  const { held, seen } = afterListing(["b"]);
  for (const uid of ["a", "b"]) assert.equal(held.holds(change(uid), true), true);
  await Promise.resolve();
  await Promise.resolve();
  assert.deepEqual(
    seen.map(({ uid }) => uid),
    ["b", "a"],
  );
});

test("what is passed on pod by pod is not all taken up before the last", async () => {
  const { held, seen } = afterListing([]);
  for (const uid of ["a", "b"]) held.holds(change(uid), true);
  assert.equal(held.isBusy, true);
  await Promise.resolve();
  await Promise.resolve();
  assert.deepEqual(
    seen.map(({ isBusy }) => isBusy),
    [true, true],
  );
  assert.equal(held.isBusy, false);
});
