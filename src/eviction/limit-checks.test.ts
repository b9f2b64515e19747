import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, podWith, thresholdOf } from "../../test/support/eviction.ts";
import { EvictionScene } from "../../test/support/eviction-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { LimitChecks } from "./limit-checks.ts";

const never = new AbortController().signal;

const memoryAndDisk = [thresholdOf("memory.available", "100Mi"), thresholdOf("nodefs.available", "100Mi")];
const limits = { "ephemeral-storage": "1Mi" };
const limited = podWith("limited", {}, { containers: [{ name: "c", image: "i", resources: { limits } }] });
const over = { memoryBytes: 1, containers: [], volumes: [], ephemeralBytes: 2 << 20 };
const plenty = observed({ "memory.available": 900n << 20n, "nodefs.available": 900n << 20n });

test("while a disk hangs, pods go for memory within two seconds: no check of limits holds them up", async () => {
  const scene = new EvictionScene({ thresholds: memoryAndDisk });
  scene.add(limited, 1);
  for (const [name, mebibytes] of [
    ["first", 500],
    ["second", 400],
  ] as const) {
    scene.add(podWith(name), mebibytes);
  }
  scene.storage = new Promise(() => {});
  scene.short();
  await scene.play(async () => {
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["first"]);
    scene.gone("first");
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["first", "second"], "no pass waits again for the same check");
  });
});

test("nor does a measurement of what gets short, for the explanation", async () => {
  const scene = new EvictionScene({ thresholds: memoryAndDisk });
  scene.add(podWith("web"), 500);
  scene.storage = new Promise(() => {});
  await scene.play(async () => {
    scene.sees = observed({ "memory.available": 900n << 20n, "nodefs.available": 150n << 20n });
    await scene.clock.advance(15_000);
    scene.sees = observed({ "memory.available": 50n << 20n, "nodefs.available": 150n << 20n });
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["web"]);
  });
});

test("a late check evicts once it knows, no pod goes for a disk before, nor for the node in the next pass", async () => {
  const scene = new EvictionScene({ thresholds: memoryAndDisk });
  scene.add(limited, 1);
  scene.usages.set("uid-limited", over);
  scene.add(podWith("large"), 500);
  const storage = Promise.withResolvers<void>();
  scene.storage = storage.promise;
  scene.sees = observed({ "memory.available": 900n << 20n, "nodefs.available": 50n << 20n });
  scene.onKill = (name) => scene.gone(name);
  await scene.play(async () => {
    await scene.clock.advance(8500);
    assert.deepEqual([scene.victims, scene.reclaimed, scene.manager.pressures], [[], [], ["DiskPressure"]]);
    scene.sees = observed({ "memory.available": 50n << 20n, "nodefs.available": 50n << 20n });
    scene.storage = Promise.resolve();
    storage.resolve();
    await scene.clock.advance(600);
    assert.deepEqual(scene.victims, ["limited"]);
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["limited", "large"]);
  });
});

test("evictions for a disk have their turn between two checks that are late", async () => {
  const scene = new EvictionScene({ thresholds: memoryAndDisk });
  scene.add(limited, 1);
  scene.sees = plenty;
  let storage = Promise.withResolvers<void>();
  await scene.play(async () => {
    await scene.clock.advance(5000);
    scene.storage = storage.promise;
    await scene.clock.advance(8000);
    scene.short("nodefs.available");
    await scene.clock.advance(20_000);
    assert.deepEqual(scene.reclaimed, []);
    storage.resolve();
    storage = Promise.withResolvers<void>();
    scene.storage = storage.promise;
    await scene.clock.advance(1000);
    assert.equal(scene.reclaimed.length, 3);
    storage.resolve();
    await scene.clock.advance(1000);
    assert.equal(scene.victims.length, 1);
  });
});

test("a late check that evicts while pods are ranked for memory spares the first of these", async () => {
  const scene = new EvictionScene({ thresholds: memoryAndDisk });
  scene.add(limited, 1);
  scene.usages.set("uid-limited", over);
  scene.add(podWith("large"), 500);
  const [storage, running] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  scene.storage = storage.promise;
  scene.running = running.promise;
  scene.short();
  scene.onKill = (name) => scene.gone(name);
  await scene.play(async () => {
    await scene.clock.advance(3000);
    storage.resolve();
    await scene.clock.advance(100);
    running.resolve();
    scene.running = Promise.resolve();
    await scene.clock.advance(1);
    assert.deepEqual(scene.victims, ["limited"], "what was observed before it went shows nothing");
    await scene.clock.advance(20_000);
    assert.deepEqual(scene.victims, ["limited", "large"]);
  });
});

test("a late check that evicts during an observation spares the first pod for the node until the next one", async () => {
  const scene = new EvictionScene({ thresholds: memoryAndDisk });
  scene.add(limited, 1);
  scene.usages.set("uid-limited", over);
  scene.add(podWith("large"), 500);
  const [storage, sight] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  scene.storage = storage.promise;
  scene.short();
  scene.onKill = (name) => scene.gone(name);
  // The first observation is too old once the check is late.
  scene.onLook = () => {
    if (scene.looks === 2) scene.sight = sight.promise;
  };
  await scene.play(async () => {
    await scene.clock.advance(3000);
    scene.storage = Promise.resolve();
    storage.resolve();
    await scene.clock.advance(100);
    scene.sight = Promise.resolve();
    sight.resolve();
    await scene.clock.advance(1);
    assert.deepEqual(scene.victims, ["limited"], "the figures may be from before it went");
    await scene.clock.advance(3000);
    assert.deepEqual(scene.victims, ["limited", "large"]);
  });
});

test("a check that is wanted at once while another one is under way follows that without delay", async () => {
  const clock = new ManualClock();
  const beganMs: number[] = [];
  const slow = Promise.withResolvers<void>();
  const enforce = async (): Promise<boolean> => {
    beganMs.push(clock.monotonic() - startMs);
    if (beganMs.length === 1) await slow.promise;
    return false;
  };
  const checks = new LimitChecks({ clock, log: silentLog, limits: { enforce } });
  const startMs = clock.monotonic();
  const pass = async (): Promise<void> => {
    const ended = checks.enforce(async () => "one", never);
    await clock.advance(2000);
    await ended;
  };
  await pass();
  checks.hasten();
  await pass();
  slow.resolve();
  await pass();
  await pass();
  assert.deepEqual(beganMs, [0, 6000], "at the first pass after the end, and only then");
});
