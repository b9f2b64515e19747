import assert from "node:assert/strict";
import { test } from "node:test";
import type { ImageCollector } from "../images/image-collector.ts";
import type { Cause } from "../journal/entry.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import { reclaimOf } from "./node-collection.ts";

test("a node that does not know all of its pods yet reclaims no images", async () => {
  const cause: Cause = { code: "EvictionThresholdMet", message: "the disk is full" };
  const signal = new AbortController().signal;
  const made: string[] = [];
  const garbage = { isReady: false, removeUnused: async () => void made.push("containers") };
  const images = { removeUnused: async () => void made.push("images") };
  const reclaim = reclaimOf({ garbage: garbage as unknown as Kubelet["garbage"] }, images as unknown as ImageCollector);
  await reclaim.removeUnusedImages(cause, signal);
  assert.deepEqual(made, []);
  garbage.isReady = true;
  await reclaim.removeUnusedContainers(cause, signal);
  await reclaim.removeUnusedImages(cause, signal);
  assert.deepEqual(made, ["containers", "images"]);
});
