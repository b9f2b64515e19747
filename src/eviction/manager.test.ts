import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, podWith, thresholdOf } from "../../test/support/eviction.ts";
import { EvictionScene, termsOf } from "../../test/support/eviction-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { AcceptedEvictions } from "./accepted-evictions.ts";
import type { EvictionTerms } from "./eviction-terms.ts";
import type { PodUsage } from "./pod-usage.ts";

const mi = 1 << 20;

test("the first pod of the ranking is evicted, and the next one once it is gone and memory is still short", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("small"), 10);
  scene.add(podWith("large"), 500);
  scene.add(podWith("critical", {}, { priority: 2_000_000_000 }), 900);
  await scene.play(async () => {
    assert.deepEqual(scene.victims, []);
    scene.short();
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["large"]);
    await scene.clock.advance(20_000);
    assert.deepEqual(scene.victims, ["large"], "it is not gone yet");
    scene.gone("large");
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["large", "small"]);
    scene.gone("small");
    await scene.clock.advance(60_000);
    assert.deepEqual(scene.victims, ["large", "small"], "critical pods stay");
  });
  const [first] = scene.killed;
  assert.equal(first?.ending.graceSeconds, 1);
  assert.deepEqual([first.ending.outcome, first.ending.lasts, first.ending.cause.code], ["cutShort", true, "Evicted"]);
  const message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ";
  assert.deepEqual([first.ending.cause.message, first.ending.disruption], [message, message]);
  const entry = scene.journal.entries.find(({ what }) => what === "PodEvicted");
  assert.match(
    entry?.message ?? "",
    /^evicted for memory\.available, ranked 1 of 3: uses 500Mi .*next: default\/small/u,
  );
  assert.equal(entry?.cause?.code, "EvictionThresholdMet");
});

test("a pod that does not stop in time delays the next eviction by its grace period and half a minute", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("stuck"), 500);
  scene.add(podWith("next"), 10);
  await scene.play(async () => {
    scene.short();
    await scene.clock.advance(10_000);
    await scene.clock.advance(30_000);
    assert.deepEqual(scene.victims, ["stuck"]);
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["stuck", "next"]);
  });
});

test("no pod is evicted once enough is available, and conditions hold for the transition period", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("large"), 500);
  scene.add(podWith("small"), 10);
  await scene.play(async () => {
    scene.short();
    await scene.clock.advance(10_000);
    scene.gone("large");
    scene.sees = observed({ "memory.available": 900n << 20n });
    await scene.clock.advance(50_000);
    assert.deepEqual([scene.victims, scene.manager.pressures], [["large"], ["MemoryPressure"]]);
    await scene.clock.advance(20_000);
    assert.deepEqual(scene.manager.pressures, []);
  });
});

test("for a soft threshold a pod gets its own grace period, at most the configured one", async () => {
  const soft = [thresholdOf("memory.available", "100Mi", 20_000)];
  for (const [own, given] of [
    [10, 10],
    [90, 40],
  ] as const) {
    const scene = new EvictionScene({ thresholds: soft });
    scene.add(podWith("web", {}, { terminationGracePeriodSeconds: own }), 500);
    await scene.play(async () => {
      scene.short();
      await scene.clock.advance(10_000);
      await scene.clock.advance(19_000);
      assert.deepEqual([scene.victims, scene.manager.pressures], [[], ["MemoryPressure"]]);
      await scene.clock.advance(2000);
      assert.deepEqual(scene.victims, ["web"]);
    });
    assert.equal(scene.killed[0]?.ending.graceSeconds, given);
  }
});

test("for a disk, the node's garbage is removed first, and no pod is evicted if that suffices", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  scene.add(podWith("web"), 1);
  await scene.play(async () => {
    scene.short("nodefs.available");
    scene.onReclaim = () => (scene.sees = observed({ "nodefs.available": 900n << 20n }));
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, []);
    scene.onReclaim = () => {};
    scene.short("nodefs.available");
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["web"]);
  });
  const why = "for nodefs.available 50Mi is below 100Mi";
  assert.deepEqual(scene.reclaimed.slice(0, 3), [`evicted ${why}`, `containers ${why}`, `images ${why}`]);
  assert.deepEqual(scene.journal.messages("EvictionAverted"), [
    "ephemeral-storage was reclaimed without evicting pods",
  ]);
});

test("what has just become short waits for no next attempt on what was short before", async () => {
  const thresholds = [thresholdOf("memory.available", "100Mi"), thresholdOf("nodefs.available", "100Mi")];
  const scene = new EvictionScene({ thresholds });
  scene.add(podWith("web"), 1);
  const see = (disk: bigint, memory: bigint): void => {
    scene.sees = observed({ "nodefs.available": disk << 20n, "memory.available": memory << 20n });
  };
  await scene.play(async () => {
    // Memory is observed each second, since it is near its threshold.
    see(900n, 105n);
    await scene.clock.advance(10_000);
    scene.onReclaim = () => see(900n, 105n);
    see(50n, 105n);
    assert.match((await scene.manager.preview(undefined)).standing, /^nodefs\.available is 50Mi/u);
    await scene.clock.advance(2000);
    assert.deepEqual([scene.victims, scene.reclaimed.length > 0], [[], true]);
    scene.onReclaim = () => {};
    see(900n, 50n);
    assert.match((await scene.manager.preview(undefined)).standing, /^memory\.available is 50Mi/u);
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["web"]);
  });
});

test("every pod above its own limit is evicted at once, and then none for the node", async () => {
  const scene = new EvictionScene();
  const limits = { "ephemeral-storage": "1Mi" };
  for (const name of ["a", "b"]) {
    scene.add(podWith(name, {}, { containers: [{ name: "c", image: "i", resources: { limits } }] }), 1);
    scene.usages.set(`uid-${name}`, { containers: [], volumes: [], ephemeralBytes: 2 * mi });
  }
  scene.add(podWith("large"), 500);
  await scene.play(async () => {
    assert.deepEqual(scene.victims, ["a", "b"]);
    scene.short();
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["a", "b"], "they are not gone yet");
    for (const name of ["a", "b"]) scene.gone(name);
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["a", "b", "large"]);
  });
  const [first] = scene.killed;
  assert.deepEqual([first?.ending.graceSeconds, first?.ending.disruption], [1, undefined]);
});

test("while the pods of earlier runs are unknown, no pod is evicted for the node, for a minute", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("web"), 500);
  scene.knowsAll = false;
  await scene.play(async () => {
    scene.short();
    await scene.clock.advance(59_000);
    assert.deepEqual([scene.victims, scene.manager.pressures], [[], ["MemoryPressure"]]);
    await scene.clock.advance(11_000);
    assert.deepEqual(scene.victims, ["web"]);
  });
});

test("conditions persist while the machine cannot be observed", async () => {
  const scene = new EvictionScene();
  await scene.play(async () => {
    scene.short();
    await scene.clock.advance(10_000);
    scene.sees = new Error("no such file");
    await scene.clock.advance(300_000);
    assert.deepEqual(scene.manager.pressures, ["MemoryPressure"]);
    assert.ok(scene.looks > 20);
  });
});

test("far from every threshold memory is observed each 10 seconds, or each second where that is asked for", async () => {
  for (const [watchesMemory, looks] of [
    [false, 7],
    [true, 61],
  ] as const) {
    const scene = new EvictionScene({ watchesMemory });
    await scene.play(async () => {
      for (let second = 0; second < 60; second++) await scene.clock.advance(1000);
      assert.equal(scene.looks, looks);
    });
  }
});

test("without thresholds and limits nothing is observed", async () => {
  const scene = new EvictionScene({ thresholds: [], enforcesStorageLimits: false });
  await scene.play(async () => {
    await scene.manager.known(new AbortController().signal);
    await scene.clock.advance(60_000);
    assert.equal(scene.looks, 0);
  });
});

/** A start with these settings after one with others. */
async function afterStartWith(
  before: EvictionTerms,
  now: EvictionTerms,
  asks: boolean,
): Promise<{ readonly accepted: AcceptedEvictions; readonly next: () => Promise<AcceptedEvictions> }> {
  const deps = { files: new MemoryFiles(new ManualClock()), log: silentLog, directory: "/d" };
  await new AcceptedEvictions(deps, before, false).load();
  const next = async (): Promise<AcceptedEvictions> => {
    const later = new AcceptedEvictions(deps, now, true);
    await later.load();
    return later;
  };
  return { accepted: new AcceptedEvictions(deps, now, asks), next };
}

test("pods that changed thresholds evict are named, and stay until the confirmation where it is required", async () => {
  for (const asks of [false, true]) {
    const before = termsOf({ thresholds: [thresholdOf("memory.available", "10Mi")] });
    const { accepted, next } = await afterStartWith(before, termsOf({}), asks);
    const scene = new EvictionScene({}, accepted);
    scene.add(podWith("web"), 500);
    await scene.play(async () => {
      scene.short();
      await scene.clock.advance(30_000);
      assert.deepEqual([scene.victims, scene.manager.pressures], [asks ? [] : ["web"], ["MemoryPressure"]]);
      if (!asks) return;
      assert.deepEqual(
        scene.manager.health().map(({ name, ok, warning = false }) => [name, ok, warning]),
        [
          ["pressure", false, false],
          ["eviction", true, true],
        ],
      );
      assert.deepEqual([await scene.manager.confirm(), await scene.manager.confirm()], [true, false]);
      await scene.clock.advance(10_000);
      assert.deepEqual(scene.victims, ["web"]);
    });
    const told = scene.journal.messages("EvictionByChange");
    assert.equal(told.length, 1);
    assert.match(told[0] ?? "", /^the settings of the last start would not evict default\/web for memory\.available/u);
    assert.equal((await next()).waits, false, "what is confirmed, or was allowed, is known to the next start");
  }
});

const memoryAndDisk = [thresholdOf("memory.available", "100Mi"), thresholdOf("nodefs.available", "100Mi")];
const bothShort = observed({ "memory.available": 50n << 20n, "nodefs.available": 50n << 20n });

/** Memory and the disk are short; the threshold for memory is a changed one, which waits for a confirmation. */
async function withHeldMemory(work: (scene: EvictionScene) => Promise<void>): Promise<EvictionScene> {
  const before = termsOf({ thresholds: memoryAndDisk.slice(1) });
  const { accepted } = await afterStartWith(before, termsOf({ thresholds: memoryAndDisk }), true);
  const scene = new EvictionScene({ thresholds: memoryAndDisk }, accepted);
  scene.add(podWith("web"), 500);
  await scene.play(async () => {
    scene.sees = bothShort;
    await work(scene);
  });
  const held = "the settings of the last start would not evict default/web for memory.available";
  assert.deepEqual(scene.journal.messages("EvictionByChange"), [`${held}; it stays until podwright evict --confirm`]);
  return scene;
}

test("while one threshold waits for a confirmation, a pod goes for another, after the garbage on its disk", async () => {
  const scene = await withHeldMemory(async ({ clock, victims }) => {
    await clock.advance(10_000);
    assert.deepEqual(victims, []);
  });
  assert.deepEqual(scene.victims, ["web"]);
  const why = "for nodefs.available 50Mi is below 100Mi";
  assert.deepEqual(scene.reclaimed, [`evicted ${why}`, `containers ${why}`, `images ${why}`]);
  const entry = scene.journal.entries.find(({ what }) => what === "PodEvicted");
  assert.equal(entry?.cause?.message, "nodefs.available 50Mi is below 100Mi");
  assert.match(scene.killed[0]?.ending.cause.message ?? "", /^The node was low on resource: ephemeral-storage\. /u);
});

test("while one threshold waits, no pod goes for another if the garbage on its disk suffices", async () => {
  const scene = await withHeldMemory(async (short) => {
    short.removes["evicted"] = ["c1"];
    await short.clock.advance(12_000);
    assert.deepEqual(short.victims, [], "the layers of what was removed are waited for");
    short.sees = observed({ "memory.available": 50n << 20n, "nodefs.available": 900n << 20n });
    await short.clock.advance(60_000);
  });
  assert.deepEqual(scene.victims, []);
  assert.deepEqual(scene.reclaimed, ["evicted for nodefs.available 50Mi is below 100Mi"], "images are spared");
  assert.deepEqual(scene.journal.messages("EvictionAverted"), [
    "ephemeral-storage was reclaimed without evicting another pod",
  ]);
});

test("pods above limits that the last start did not enforce stay until the confirmation", async () => {
  const before = termsOf({ enforcesStorageLimits: false });
  const { accepted } = await afterStartWith(before, termsOf({}), true);
  const scene = new EvictionScene({}, accepted);
  const limits = { "ephemeral-storage": "1Mi" };
  scene.add(podWith("web", {}, { containers: [{ name: "c", image: "i", resources: { limits } }] }), 1);
  scene.usages.set("uid-web", { containers: [], volumes: [], ephemeralBytes: 2 * mi });
  await scene.play(async () => {
    await scene.clock.advance(60_000);
    assert.deepEqual(scene.victims, []);
    const [, shown] = scene.manager.health();
    assert.match(shown?.detail ?? "", /would not evict default\/web for ephemeralpodfs\.limit; it stays until/u);
    await scene.manager.confirm();
    await scene.clock.advance(10_000);
    assert.deepEqual([scene.victims, scene.manager.health().length], [["web"], 1]);
  });
  assert.equal(scene.journal.messages("EvictionByChange").length, 1);
});

test("a pod that ended while it was ranked is skipped, and the rank says so", async () => {
  const scene = new EvictionScene();
  for (const [name, mebibytes] of [
    ["first", 500],
    ["second", 100],
    ["third", 50],
  ] as const) {
    scene.add(podWith(name), mebibytes);
  }
  await scene.play(async () => {
    scene.short();
    scene.onRead = () => scene.states.set("first", { kind: "finished" });
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["second"]);
  });
  const [why = ""] = scene.journal.messages("PodEvicted");
  assert.match(why, /ranked 2 of 3 \(the one before it ended meanwhile\): uses 100Mi .*; next: default\/third/u);
});

test("storage whose measurement was cut off is measured once more before a pod is chosen", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  const stores = (rootfs: number | undefined): PodUsage => {
    const own = rootfs === undefined ? undefined : { bytes: rootfs * mi, inodes: 1 };
    return { containers: [{ name: "c", rootfs: own, logs: { bytes: 0, inodes: 0 } }], volumes: [] };
  };
  scene.add(podWith("large"), 0);
  scene.add(podWith("small"), 0);
  scene.usages.set("uid-small", stores(10));
  let reads = 0;
  scene.onRead = () => scene.usages.set("uid-large", stores(++reads % 2 === 1 ? undefined : 900));
  await scene.play(async () => {
    scene.short("nodefs.available");
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["large"]);
  });
});

test("what others have measured explains an eviction that came suddenly; without that it says that nothing was", async () => {
  const whyAfter = async (measure: (scene: EvictionScene) => void): Promise<string> => {
    const scene = new EvictionScene({ thresholds: memoryAndDisk });
    scene.add(podWith("web"), 10);
    await scene.play(async () => {
      scene.sees = observed({ "memory.available": 900n << 20n, "nodefs.available": 900n << 20n });
      for (const mebibytes of [10, 20]) {
        scene.usages.set("uid-web", { memoryBytes: mebibytes * mi, containers: [], volumes: [] });
        measure(scene);
        await scene.clock.advance(20_000);
      }
      scene.usages.set("uid-web", { memoryBytes: 500 * mi, containers: [], volumes: [] });
      scene.short();
      await scene.clock.advance(10_000);
      assert.deepEqual(scene.victims, ["web"]);
    });
    return scene.journal.messages("PodEvicted")[0] ?? "";
  };
  const measured = await whyAfter((scene) => scene.measure("running"));
  assert.match(measured, /uses 500Mi of memory.*; recent usage: 10Mi \d+ s ago, 20Mi \d+ s ago$/u);
  for (const measure of [() => {}, (scene: EvictionScene) => scene.measure("storage")]) {
    assert.match(await whyAfter(measure), /uses 500Mi.*; its usage was not measured in the minutes before$/u);
  }
});

test("an eviction for a disk gives the usage over the last minutes, too", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  scene.add(podWith("web"), 0);
  const use = (mebibytes: number): void => {
    const volumes = [{ name: "data", isLocal: true, bytes: mebibytes * mi, inodes: 1 }];
    scene.usages.set("uid-web", { containers: [], volumes });
  };
  await scene.play(async () => {
    use(200);
    scene.sees = observed({ "nodefs.available": 150n << 20n });
    await scene.clock.advance(20_000);
    use(250);
    scene.short("nodefs.available");
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["web"]);
  });
  const [why = ""] = scene.journal.messages("PodEvicted");
  assert.match(why, /uses 250Mi of ephemeral-storage.*; recent usage: (?:200Mi \d+ s ago(?:, )?)+/u);
});
