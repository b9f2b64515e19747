import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, podWith, thresholdOf } from "../../test/support/eviction.ts";
import { EvictionScene } from "../../test/support/eviction-scene.ts";

const diskAndProcesses = [thresholdOf("nodefs.available", "100Mi"), thresholdOf("pid.available", "100")];
const shortOfBoth = observed({ "nodefs.available": 50n << 20n, "pid.available": 50n });

test("while storage cannot be measured yet, a pod goes for what else is short", async () => {
  const scene = new EvictionScene({ thresholds: diskAndProcesses, enforcesStorageLimits: false });
  scene.add(podWith("busy"), 0);
  scene.usages.set("uid-busy", { processes: 900, containers: [], volumes: [] });
  scene.storageFails = true;
  scene.sees = shortOfBoth;
  await scene.play(async () => {
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["busy"]);
  });
  assert.match(scene.journal.messages("PodEvicted").join(), /processes/u);
});

test("if no pod can free a disk, one goes for what else is short", async () => {
  const scene = new EvictionScene({ thresholds: diskAndProcesses, enforcesStorageLimits: false });
  scene.fileSystems = undefined;
  scene.sees = observed({ "nodefs.available": 50n << 20n, "pid.available": 500n });
  scene.add(podWith("busy"), 0);
  scene.usages.set("uid-busy", { processes: 900, containers: [], volumes: [] });
  await scene.play(async () => {
    await scene.clock.advance(70_000);
    assert.deepEqual(scene.victims, [], "it has nothing on the disk");
    scene.sees = shortOfBoth;
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["busy"]);
  });
});

test("neither memory that can be measured nor a preview prolongs the wait for storage that cannot be", async () => {
  const thresholds = [thresholdOf("nodefs.available", "100Mi"), thresholdOf("memory.available", "100Mi")];
  const scene = new EvictionScene({ thresholds, enforcesStorageLimits: false });
  scene.add(podWith("web"), 10);
  scene.add(podWith("critical", {}, { priority: 2_000_000_000 }), 900);
  scene.usages.delete("uid-web");
  scene.usages.delete("uid-critical");
  scene.storageFails = true;
  scene.sees = observed({ "nodefs.available": 50n << 20n, "memory.available": 900n << 20n });
  await scene.play(async () => {
    for (let seconds = 0; seconds < 29; seconds++) {
      await scene.manager.preview("memory.available");
      scene.storageFails = false;
      await scene.manager.preview("nodefs.available");
      scene.storageFails = true;
      await scene.clock.advance(1000);
    }
    assert.deepEqual(scene.victims, []);
    await scene.clock.advance(12_000);
    assert.deepEqual(scene.victims, ["web"]);
  });
});
