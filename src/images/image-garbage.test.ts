import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  bytesAbove,
  formatSize,
  holdSummary,
  type ImageGarbagePolicy,
  judgeImages,
  type KnownImage,
  shortageOf,
} from "./image-garbage.ts";

const policy: ImageGarbagePolicy = {
  highThresholdPercent: 85,
  lowThresholdPercent: 80,
  minAgeMs: 120_000,
  maxAgeMs: 0,
};
const hour = 3_600_000;
const times = { nowMs: 10 * hour, beganMs: 0 };

function image(id: string, change: Partial<KnownImage> = {}): KnownImage {
  return {
    ...{ id, runtimeHandler: "", names: [`${id}:1`], sizeBytes: 1, detectedMs: 0, lastUsedMs: undefined },
    ...{ hold: undefined, ...change },
  };
}

const ids = (images: readonly KnownImage[]): string[] => images.map(({ id }) => id);

describe("judgeImages", () => {
  test("longest unused images go first, and among never used ones the first seen", () => {
    const images = [
      image("used-now", { lastUsedMs: 9 * hour }),
      image("seen-late", { detectedMs: 2 * hour }),
      image("used-before", { lastUsedMs: hour }),
      image("seen-early", { detectedMs: hour }),
    ];
    const { unused } = judgeImages(images, policy, times);
    assert.deepEqual(ids(unused), ["seen-early", "seen-late", "used-before", "used-now"]);
  });

  test("a held image stays whatever its age, and so does one that was just seen", () => {
    const hold = { reason: "inUse", text: "in use by container web" } as const;
    const young = image("young", { detectedMs: times.nowMs - 119_999 });
    const old = image("old", { detectedMs: times.nowMs - 120_000 });
    const { unused, held } = judgeImages([image("held", { hold }), young, old], policy, times);
    assert.deepEqual(ids(unused), ["old"]);
    assert.deepEqual(
      held.map((each) => [each.image.id, each.hold.text]),
      [
        ["held", "in use by container web"],
        ["young", "first seen 1m59s ago, less than imageMinimumGCAge (2m0s)"],
      ],
    );
  });

  test("images unused for the maximum age are overdue, once this run is as old", () => {
    const limited = { ...policy, maxAgeMs: 2 * hour };
    const images = [
      image("long-unused", { lastUsedMs: 7 * hour }),
      image("just-used", { lastUsedMs: 9 * hour }),
      image("never-used", { detectedMs: hour }),
      image("just-seen", { detectedMs: 9 * hour }),
    ];
    const overdue = (beganMs: number): string[] =>
      ids(judgeImages(images, limited, { nowMs: 10 * hour, beganMs }).overdue);
    assert.deepEqual(overdue(7 * hour), ["never-used", "long-unused"]);
    assert.deepEqual(overdue(8 * hour), [], "it has watched for two hours only, not longer");
    assert.deepEqual(ids(judgeImages(images, policy, times).overdue), []);
  });
});

describe("shortageOf", () => {
  const at = (availableBytes: number, capacityBytes = 1000) => shortageOf({ capacityBytes, availableBytes }, policy);

  test("at the high threshold the amount to free is the difference to the low threshold", () => {
    assert.equal(at(160), undefined);
    assert.deepEqual(
      at(151),
      { usedPercent: 85, bytesToFree: 49 },
      "84.9 % are 85 to upstream, which cuts what is left",
    );
    assert.deepEqual(at(150), { usedPercent: 85, bytesToFree: 50 });
    assert.deepEqual(at(0), { usedPercent: 100, bytesToFree: 200 });
  });

  test("more free space than capacity counts as unused", () => {
    assert.equal(at(2000), undefined);
    assert.equal(bytesAbove({ capacityBytes: 1000, availableBytes: 2000 }, 80), 0);
  });
});

test("held images are counted by reason", () => {
  const held = [
    { image: image("a"), hold: { reason: "inUse", text: "" } },
    { image: image("b"), hold: { reason: "pinned", text: "" } },
    { image: image("c"), hold: { reason: "inUse", text: "" } },
  ] as const;
  assert.equal(holdSummary(held), "2 in use, 1 pinned");
  assert.equal(holdSummary([]), "");
});

test("sizes are formatted as upstream does", () => {
  const written = [0, 1023, 1024, 1536, 5 * 2 ** 30, 3 * 2 ** 50].map(formatSize);
  assert.deepEqual(written, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 GiB", "3072.0 TiB"]);
});
