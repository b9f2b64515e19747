import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import { type PodHolding, PodHoldings } from "./pod-holdings.ts";

const cause: Cause = { code: "Resync", message: "a test wants it" };
const pod = { uid: podUid("u"), namespace: "ns", name: "p" };
const signal = new AbortController().signal;

function scene(): { readonly holdings: PodHoldings; readonly released: string[]; readonly broken: Set<string> } {
  const released: string[] = [];
  const broken = new Set<string>();
  const holding = (name: string, until: PodHolding["until"]): PodHolding => ({
    name,
    until,
    release: async ({ uid }, { comesBack }) => {
      if (broken.has(name)) throw new Error(`${name} can't be released`);
      released.push(`${name} of ${uid}${comesBack ? ", which comes back" : ""}`);
    },
  });
  const rows = [holding("volumes", "ended"), holding("cgroup", "removed"), holding("directory", "removed")];
  return { holdings: new PodHoldings(rows), released, broken };
}

test("an ended pod releases what others may need, and the rest when it is removed, in order", async () => {
  const { holdings, released } = scene();
  await holdings.releaseEnded(pod, cause, signal);
  assert.deepEqual(released, ["volumes of u"]);
  await holdings.releaseRemoved(pod, { cause, comesBack: true }, signal);
  assert.deepEqual(released.slice(1), ["cgroup of u, which comes back", "directory of u, which comes back"]);
});

test("a failed release keeps the following holdings, and the next attempt releases them", async () => {
  const { holdings, released, broken } = scene();
  broken.add("cgroup");
  await assert.rejects(holdings.releaseRemoved(pod, { cause, comesBack: false }, signal), /cgroup/);
  assert.deepEqual(released, []);
  broken.clear();
  await holdings.releaseRemoved(pod, { cause, comesBack: false }, signal);
  assert.deepEqual(released, ["cgroup of u", "directory of u"]);
});

test("holdings in another order than their release violate an invariant", () => {
  const [first, last] = scene().holdings.all;
  assert.ok(first !== undefined && last !== undefined);
  assert.throws(() => new PodHoldings([last, first]), /what a pod holds until it ends is released first/);
});
