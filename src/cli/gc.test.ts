import assert from "node:assert/strict";
import { test } from "node:test";
import type { GarbageReport } from "../server/local-api.ts";
import { garbageLines } from "./gc.ts";
import { Painter } from "./terminal.ts";

const plainPainter = new Painter(false);

const report: GarbageReport = {
  items: [
    {
      kind: "image",
      id: "sha256:1",
      name: "docker.io/library/web:1",
      bytes: 3 << 20,
      stays: "in use by container web",
    },
    { kind: "image", id: "sha256:2", name: "docker.io/library/old:1", bytes: 1536 },
    { kind: "container", id: "c1", name: "web #0", pod: "default/shop", bytes: 512 },
    { kind: "sandbox", id: "s1", name: "sandbox #0", pod: "default/shop" },
  ],
  failures: [],
};

test("removals come first, kept items have reasons, and totals follow", () => {
  assert.deepEqual(garbageLines(report, true, plainPainter), [
    "KIND        NAME                      SIZE      ",
    "image       docker.io/library/old:1   1.5 KiB   would be removed",
    "container   default/shop web #0       512 B     would be removed",
    "sandbox     default/shop sandbox #0   -         would be removed",
    "image       docker.io/library/web:1   3.0 MiB   stays: in use by container web",
    "",
    "1 image, 1 dead container, 1 sandbox would be removed: at most 2.0 KiB, because images share layers",
  ]);
});

test("while a runtime still deletes what containers wrote, the freed space is a minimum", () => {
  const removed: GarbageReport = { ...report, items: report.items.slice(2), freedBytes: 256 };
  assert.equal(
    garbageLines(removed, false, plainPainter).at(-1),
    "0 images, 1 dead container, 1 sandbox removed; at least 256 B freed on the image file system",
  );
});

test("removals are reported with the freed space, and a node without image collection says why", () => {
  const removed: GarbageReport = {
    ...report,
    items: report.items.slice(1, 2),
    freedBytes: 2048,
    imagesStay: "not ours",
  };
  assert.deepEqual(garbageLines(removed, false, plainPainter).slice(1), [
    "image   docker.io/library/old:1   1.5 KiB   removed",
    "",
    "not ours",
    "1 image, 0 dead containers, 0 sandboxes removed; 2.0 KiB freed on the image file system",
  ]);
});
