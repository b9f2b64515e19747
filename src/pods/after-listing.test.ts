import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { AfterListing } from "./after-listing.ts";
import type { PodChange } from "./pod-change.ts";

const change = (uid: string): PodChange => ({
  op: "add",
  pod: podWith({ containers: [] }, { uid }),
  cause: { code: "ManifestAdded", message: "wanted at the start" },
});

async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
}

function afterListing(running: readonly string[], beforeStarts = async (): Promise<void> => {}) {
  const seen: { readonly uid: string; readonly isBusy: boolean }[] = [];
  const held = new AfterListing({
    pleg: { firstListing: Promise.resolve(), isListed: (uid) => running.includes(uid) },
    knowsAll: () => false,
    moreToCome: () => false,
    beforeStarts,
    next: ({ pod }) => void seen.push({ uid: pod.metadata.uid, isBusy: held.isBusy }),
  });
  return { held, seen };
}

test("of what a source says at one time, that which runs comes first", async () => {
  const { held, seen } = afterListing(["b"]);
  for (const uid of ["a", "b"]) assert.equal(held.holds(change(uid), true), true);
  await settled();
  assert.deepEqual(
    seen.map(({ uid }) => uid),
    ["b", "a"],
  );
});

test("what is passed on pod by pod is not all taken up before the last", async () => {
  const { held, seen } = afterListing([]);
  for (const uid of ["a", "b"]) held.holds(change(uid), true);
  assert.equal(held.isBusy, true);
  await settled();
  assert.deepEqual(
    seen.map(({ isBusy }) => isBusy),
    [true, true],
  );
  assert.equal(held.isBusy, false);
});

test("what does not run waits for what is asked for before, what runs does not", async () => {
  const asked = Promise.withResolvers<void>();
  let questions = 0;
  const { held, seen } = afterListing(["a"], async () => {
    questions++;
    await asked.promise;
  });
  held.holds(change("a"), true);
  await settled();
  assert.deepEqual([seen.length, questions], [1, 0]);
  held.holds(change("b"), true);
  await settled();
  assert.deepEqual([seen.length, questions, held.isBusy], [1, 1, true]);
  asked.resolve();
  await settled();
  assert.equal(seen.length, 2);
});
