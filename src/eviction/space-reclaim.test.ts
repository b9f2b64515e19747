import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, podWith, thresholdOf } from "../../test/support/eviction.ts";
import { EvictionScene, termsOf } from "../../test/support/eviction-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { AcceptedEvictions } from "./accepted-evictions.ts";

/** Two pods on a full disk, of which the first has been evicted, and its containers are removed when that is asked. */
async function withVictim(work: (scene: EvictionScene) => Promise<void>): Promise<EvictionScene> {
  const scene = new EvictionScene({
    thresholds: [thresholdOf("nodefs.available", "100Mi"), thresholdOf("pid.available", "1k")],
  });
  scene.add(podWith("first"), 1);
  scene.add(podWith("second"), 1);
  await scene.play(async () => {
    scene.short("nodefs.available");
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["first"]);
    scene.reclaimed.length = 0;
    scene.removes["evicted"] = ["c1"];
    scene.gone("first");
    await scene.clock.advance(1000);
    await work(scene);
  });
  return scene;
}

test("no second pod is evicted while the layers of the first are being freed, and none if that suffices", async () => {
  const scene = await withVictim(async (short) => {
    await short.clock.advance(6000);
    assert.deepEqual(short.victims, ["first"]);
    short.sees = observed({ "nodefs.available": 900n << 20n });
    await short.clock.advance(30_000);
    assert.deepEqual(short.victims, ["first"]);
  });
  assert.deepEqual(scene.reclaimed, ["evicted for nodefs.available 50Mi is below 100Mi"], "images are spared");
  assert.deepEqual(scene.journal.messages("EvictionAverted"), [
    "ephemeral-storage was reclaimed without evicting another pod",
  ]);
});

test("the second pod goes as soon as the layers of the first are freed and do not suffice", async () => {
  await withVictim(async (scene) => {
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["first"]);
    scene.freed.add("c1");
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["first", "second"]);
  });
});

test("the layers of a victim delay the next eviction by ten seconds after their removal, also unseen ones", async () => {
  for (const unseen of [[], ["c1"]]) {
    await withVictim(async (scene) => {
      for (const id of unseen) scene.unseen.add(id);
      await scene.clock.advance(8000);
      assert.deepEqual(scene.victims, ["first"]);
      await scene.clock.advance(2000);
      assert.deepEqual(scene.victims, ["first", "second"]);
    });
  }
});

test("the layers of other garbage delay an eviction by ten seconds, unseen ones by three", async () => {
  for (const [unseen, seconds] of [
    [[], 10],
    [["job"], 3],
  ] as const) {
    const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
    scene.add(podWith("web"), 1);
    scene.removes["containers"] = ["job"];
    for (const id of unseen) scene.unseen.add(id);
    await scene.play(async () => {
      scene.short("nodefs.available");
      await scene.clock.advance(10_000 + (seconds - 1) * 1000);
      assert.deepEqual(scene.victims, []);
      await scene.clock.advance(2000);
      assert.deepEqual(scene.victims, ["web"]);
    });
  }
});

test("a disk that continues to fill up is not waited for on account of the node's garbage", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  scene.add(podWith("web"), 1);
  scene.removes["containers"] = ["job"];
  await scene.play(async () => {
    scene.short("nodefs.available");
    await scene.clock.advance(12_000);
    assert.deepEqual(scene.victims, []);
    scene.sees = observed({ "nodefs.available": 46n << 20n });
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, [], "a little less is left");
    scene.sees = observed({ "nodefs.available": 44n << 20n });
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["web"]);
  });
});

test("layers delay no eviction for something else", async () => {
  await withVictim(async (scene) => {
    scene.sees = observed({ "nodefs.available": 50n << 20n, "pid.available": 1n });
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["first"], "the disk is more urgent");
    scene.sees = observed({ "nodefs.available": 900n << 20n, "pid.available": 1n });
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["first", "second"]);
  });
});

const diskAndMore = [
  thresholdOf("nodefs.available", "100Mi"),
  thresholdOf("memory.available", "100Mi"),
  thresholdOf("pid.available", "1k"),
];

test("while garbage is being removed, pods go for memory and processes, and the removal is waited for afterwards", async () => {
  for (const [signal, left] of [
    ["memory.available", 50n << 20n],
    ["pid.available", 1n],
  ] as const) {
    const scene = new EvictionScene({ thresholds: diskAndMore });
    scene.add(podWith("first"), 500);
    scene.add(podWith("second"), 1);
    scene.add(podWith("third"), 1);
    const removal = Promise.withResolvers<void>();
    scene.removal = removal.promise;
    await scene.play(async () => {
      scene.short("nodefs.available");
      await scene.clock.advance(15_000);
      assert.deepEqual(scene.victims, []);
      scene.sees = observed({ "nodefs.available": 50n << 20n, [signal]: left });
      await scene.clock.advance(1000);
      assert.deepEqual([scene.victims, scene.manager.pressures.length], [["first"], 2]);
      scene.gone("first");
      scene.short("nodefs.available");
      await scene.clock.advance(10_000);
      assert.deepEqual([scene.victims, scene.reclaimed.length], [["first"], 1], "the same removal");
      removal.resolve();
      await scene.clock.advance(1000);
      assert.deepEqual(scene.victims, ["first", "second"]);
    });
    assert.deepEqual(
      scene.reclaimed.map((what) => what.split(" ")[0]),
      ["evicted", "containers", "images"],
    );
  }
});

test("a removal that hangs delays an eviction for its disk by a minute", async () => {
  const scene = new EvictionScene({ thresholds: diskAndMore });
  scene.add(podWith("web"), 1);
  await scene.play(async () => {
    scene.onReclaim = () => {
      // That of images.
      if (scene.reclaimed.length === 3) scene.removal = new Promise(() => {});
    };
    scene.short("nodefs.available");
    await scene.clock.advance(69_000);
    assert.deepEqual(scene.victims, []);
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["web"]);
  });
});

test("what waits for a confirmation does not interrupt a removal", async () => {
  const deps = { files: new MemoryFiles(new ManualClock()), log: silentLog, directory: "/d" };
  await new AcceptedEvictions(deps, termsOf({ thresholds: diskAndMore.slice(0, 2) }), false).load();
  const accepted = new AcceptedEvictions(deps, termsOf({ thresholds: diskAndMore }), true);
  const scene = new EvictionScene({ thresholds: diskAndMore }, accepted);
  scene.add(podWith("web"), 1);
  const removal = Promise.withResolvers<void>();
  scene.removal = removal.promise;
  await scene.play(async () => {
    scene.sees = observed({ "nodefs.available": 50n << 20n, "pid.available": 1n });
    await scene.clock.advance(30_000);
    assert.deepEqual([scene.victims, scene.reclaimed.length], [[], 1]);
    removal.resolve();
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["web"]);
  });
  assert.match(scene.journal.messages("PodEvicted")[0] ?? "", /^evicted for nodefs\.available/u);
});

test("layers on a disk that does not answer count as unseen ones", async () => {
  const scene = new EvictionScene({ thresholds: diskAndMore });
  scene.add(podWith("web"), 1);
  scene.removes["containers"] = ["job"];
  scene.layers = new Promise(() => {});
  await scene.play(async () => {
    scene.short("nodefs.available");
    await scene.clock.advance(14_000);
    assert.deepEqual(scene.victims, []);
    await scene.clock.advance(7000);
    assert.deepEqual(scene.victims, ["web"]);
  });
});
