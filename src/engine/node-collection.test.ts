import assert from "node:assert/strict";
import { test } from "node:test";
import type { ImageCollector } from "../images/image-collector.ts";
import type { Cause } from "../journal/entry.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import type { Cri } from "../ports/cri.ts";
import { NodeCollection, reclaimOf } from "./node-collection.ts";

test("a node that does not know all of its pods yet reclaims no images", async () => {
  const cause: Cause = { code: "EvictionThresholdMet", message: "the disk is full" };
  const signal = new AbortController().signal;
  const made: string[] = [];
  const removeUnused = async () => {
    made.push("containers");
    return { containers: ["c1"], sandboxes: ["s1"], failures: [] };
  };
  const lately = ["c0", "c1"].map((id) => ({ id, uid: "uid-1", atMs: 0 }));
  const garbage = { isReady: false, removeUnused, removedLately: lately };
  const images = { removeUnused: async () => void made.push("images") };
  const reclaim = reclaimOf({ garbage: garbage as unknown as Kubelet["garbage"] }, images as unknown as ImageCollector);
  await reclaim.removeUnusedImages(cause, signal);
  assert.deepEqual(made, []);
  garbage.isReady = true;
  assert.deepEqual(await reclaim.removeUnusedContainers(cause, signal), lately, "whoever removed them");
  await reclaim.removeUnusedImages(cause, signal);
  assert.deepEqual(made, ["containers", "images"]);
});

test("what dead containers wrote counts as freed, and is waited for", async () => {
  const status = { uid: "uid", namespace: "default", name: "web" };
  const containers = [{ id: "c1", name: "c", restartCount: 0 }];
  const garbage = {
    isReady: true,
    unused: () => [{ status, parts: { containers, sandboxes: [], stays: [] } }],
    removeUnused: async () => ({ containers: ["c1"], sandboxes: [], failures: [] }),
  };
  const expected: number[] = [];
  const images = {
    removeUnused: async () => ({ removed: [], held: [], failures: [], freedBytes: 0 }),
    measure: async <T>(work: () => Promise<T>, expectedBytes: (result: T) => number) => {
      const result = await work();
      expected.push(expectedBytes(result));
      return { result, freedBytes: 5000 };
    },
  };
  const stats = [{ attributes: { id: "c1" }, writableLayer: { usedBytes: { value: 4096n } } }];
  const collection = new NodeCollection({
    cri: { runtime: { listContainerStats: async () => ({ stats }) } } as unknown as Pick<Cri, "runtime">,
    garbage: garbage as unknown as Kubelet["garbage"],
    images: images as unknown as ImageCollector,
    journal: { record: () => 1 },
  });
  const report = await collection.collect(new AbortController().signal);
  assert.deepEqual([expected, report.freedBytes], [[4096], 5000]);
});

test("a container that could not be removed is a failure, and not among what was removed", async () => {
  const part = (id: string) => ({ id, name: "c", restartCount: 0 });
  const status = { uid: "uid", namespace: "default", name: "web" };
  const failure = "container c #0 of default/web: it is busy";
  const garbage = {
    isReady: true,
    unused: () => [
      { status, parts: { containers: [part("c1"), part("c2")], sandboxes: [{ id: "s1", attempt: 0 }], stays: [] } },
    ],
    removeUnused: async () => ({ containers: ["c1"], sandboxes: ["s1"], failures: [failure] }),
  };
  const collection = new NodeCollection({
    cri: { runtime: { listContainerStats: async () => ({ stats: [] }) } } as unknown as Pick<Cri, "runtime">,
    garbage: garbage as unknown as Kubelet["garbage"],
    images: undefined,
    journal: { record: () => 1 },
  });
  const report = await collection.collect(new AbortController().signal);
  assert.deepEqual(
    report.items.map(({ id }) => id),
    ["c1", "s1"],
  );
  assert.deepEqual(report.failures, [failure]);
});
