import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { ListImagesResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { NodeImages } from "./node-images.ts";

const { signal } = new AbortController();

function world(limit: number) {
  const clock = new ManualClock();
  let listings = 0;
  const runtime: { hangs: Promise<void> | undefined; fails: boolean; order: 1 | -1 } = {
    hangs: undefined,
    fails: false,
    order: 1,
  };
  let changes = 0;
  const listImages = async () => {
    listings++;
    await runtime.hangs;
    if (runtime.fails) throw new Error("the runtime is away");
    const names = (count: number, of: string): string[] => Array.from({ length: count }, (_, index) => `${of}${index}`);
    const images = [
      { id: "1", size: 10n, repoTags: ["small:1"], repoDigests: ["small@sha256:1"] },
      { id: "2", size: 30n, repoTags: names(4, "tag:"), repoDigests: names(3, "digest@") },
      { id: "3", size: 20n, repoTags: [], repoDigests: [] },
      ...(limit === 50 ? [{ id: "4", size: 20n, repoTags: ["as-large:1"], repoDigests: [] }] : []),
    ];
    return create(ListImagesResponseSchema, { images: runtime.order === 1 ? images : images.toReversed() });
  };
  const deps = { clock, images: { listImages }, log: silentLog };
  const images = new NodeImages(deps, limit, () => changes++);
  return { clock, runtime, images, listings: () => listings, changes: () => changes };
}

test("the largest images are named, each by five names at most, digests first", async () => {
  const { images } = world(2);
  assert.deepEqual(await images.list(signal), [
    { names: ["digest@0", "digest@1", "digest@2", "tag:0", "tag:1"], sizeBytes: 30 },
    { names: [], sizeBytes: 20 },
  ]);
  assert.equal((await world(-1).images.list(signal)).length, 3);
  assert.deepEqual(await world(0).images.list(signal), []);
});

test("images are listed every thirty seconds at most", async () => {
  const { clock, images, listings } = world(50);
  const first = await images.list(signal);
  await clock.advance(29_999);
  assert.equal(await images.list(signal), first);
  await clock.advance(1);
  await images.list(signal);
  assert.equal(listings(), 2);
});

test("a hanging or failing runtime delays nothing, and removes no image", async () => {
  const { clock, runtime, images, listings, changes } = world(50);
  const first = await images.list(signal);
  const answer = Promise.withResolvers<void>();
  Object.assign(runtime, { hangs: answer.promise, fails: true });
  for (let times = 0; times < 3; times++) {
    await clock.advance(30_000);
    assert.equal(await images.list(signal), first);
  }
  assert.equal(listings(), 2, "one at a time");
  answer.resolve();
  await settle();
  Object.assign(runtime, { fails: false, order: -1 });
  assert.deepEqual(await images.list(signal), first);
  await settle();
  assert.deepEqual([listings(), changes()], [3, 0], "another order is nothing new");
});
