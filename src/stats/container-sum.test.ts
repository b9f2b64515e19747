import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedCgroup } from "../../test/support/stats.ts";
import { cgroupSample } from "./cgroup-files.ts";
import { sumOfContainers } from "./container-sum.ts";

test("a pod without a cgroup of its own uses what its containers use together, without pressure", () => {
  const one = { ...cgroupSample(2, recordedCgroup(2), 1), nanoCores: 30 };
  const sum = sumOfContainers([one, { ...one, timeMs: 2, nanoCores: 12 }]);
  assert.deepEqual(sum, {
    timeMs: 2,
    cpu: { usageNanoseconds: 2 * 220_619_000 },
    nanoCores: 42,
    memory: {
      usage: 2 * 31_207_424,
      workingSet: 2 * (31_207_424 - 14_999_552),
      rss: 2 * 114_688,
      cache: 2 * 30_097_408,
      mappedFile: 2 * 4096,
      activeFile: 2 * 15_097_856,
      inactiveFile: 2 * 14_999_552,
      swap: 2 * 4096,
      pageFaults: 2 * 1301,
      majorPageFaults: 2 * 3,
      limit: 2 * 67_108_864,
      swapLimit: 2 * 33_554_432,
    },
    pids: [],
  });
  const { memory } = one;
  assert.ok(memory);
  const limitless = sumOfContainers([one, { ...one, memory: { ...memory, limit: undefined } }]);
  assert.deepEqual([limitless?.memory?.limit, limitless?.memory?.swapLimit], [undefined, 2 * 33_554_432]);
});

test("of a pod of which no container is found nothing is known", () => {
  assert.equal(sumOfContainers([]), undefined);
  const bare = sumOfContainers([{ timeMs: 1, pids: [] }]);
  assert.deepEqual([bare?.cpu, bare?.memory], [undefined, undefined]);
});
