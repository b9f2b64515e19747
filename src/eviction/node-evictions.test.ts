import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, podWith, thresholdOf } from "../../test/support/eviction.ts";
import { EvictionScene } from "../../test/support/eviction-scene.ts";

test("a pod that an earlier run evicted is waited for before another one goes", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("first"), 500);
  scene.add(podWith("second"), 400);
  scene.evictedBefore("first", 30);
  scene.short();
  await scene.play(async () => {
    await scene.clock.advance(40_000);
    assert.deepEqual(scene.victims, ["first"]);
    scene.gone("first");
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["first", "second"]);
  });
});

test("while it is not known where images are, no pod goes for a disk, nothing is removed, and conditions hold", async () => {
  const thresholds = [thresholdOf("nodefs.available", "100Mi"), thresholdOf("memory.available", "100Mi")];
  const scene = new EvictionScene({ thresholds });
  scene.add(podWith("web"), 500);
  scene.fileSystems = undefined;
  scene.sees = observed({ "nodefs.available": 50n << 20n, "memory.available": 900n << 20n });
  await scene.play(async () => {
    await scene.clock.advance(30_000);
    assert.deepEqual([scene.victims, scene.reclaimed, scene.manager.pressures], [[], [], ["DiskPressure"]]);
    const ofDisk = await scene.manager.preview("imagefs.available");
    assert.deepEqual(ofDisk.pods, []);
    assert.match(ofDisk.standing, /^imagefs\.available is unknown; no pod is evicted for the disks of images and /u);
    assert.match((await scene.manager.preview("memory.available")).standing, /^memory\.available is 900Mi.*100Mi$/u);
    const next = await scene.manager.preview(undefined);
    assert.deepEqual([next.signal, next.pods.length], ["nodefs.available", 1]);
    assert.match(next.standing, /^nodefs\.available is 50Mi.*100Mi; no pod is evicted for the disks of images and /u);
    const told = scene.manager.health().find(({ name }) => name === "eviction for disks");
    assert.match(told?.detail ?? "", /^no pod is evicted for the disks of images/u);
    scene.fileSystems = "one";
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["web"]);
    assert.ok(!scene.manager.health().some(({ name }) => name === "eviction for disks"));
  });
});

test("after a minute without that, pods go for the node's own disk by logs and volumes, and none that has neither", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  const large = { name: "c", rootfs: { bytes: 900 << 20, inodes: 9 }, logs: { bytes: 0, inodes: 0 } };
  scene.add(podWith("layers", {}, { priority: -1 }), 0);
  scene.usages.set("uid-layers", { containers: [large], volumes: [] });
  scene.add(podWith("logs"), 0);
  const logs = { name: "c", rootfs: { bytes: 1, inodes: 1 }, logs: { bytes: 5 << 20, inodes: 2 } };
  scene.usages.set("uid-logs", { containers: [logs], volumes: [] });
  scene.fileSystems = undefined;
  scene.short("nodefs.available");
  await scene.play(async () => {
    await scene.clock.advance(59_000);
    assert.deepEqual(scene.victims, []);
    await scene.clock.advance(12_000);
    assert.deepEqual(scene.victims, ["logs"]);
    const kinds = new Set(scene.reclaimed.map((text) => text.split(" ")[0]));
    assert.deepEqual([...kinds], ["evicted", "containers"], "images may be elsewhere");
    scene.gone("logs");
    await scene.clock.advance(30_000);
    assert.deepEqual([scene.victims, scene.manager.pressures], [["logs"], ["DiskPressure"]]);
  });
});

test("where images were once known to be they are, also while that cannot be observed", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  scene.add(podWith("layers"), 0);
  const large = { name: "c", rootfs: { bytes: 900 << 20, inodes: 9 }, logs: { bytes: 0, inodes: 0 } };
  scene.usages.set("uid-layers", { containers: [large], volumes: [] });
  scene.sees = observed({ "nodefs.available": 900n << 20n });
  await scene.play(async () => {
    scene.fileSystems = undefined;
    scene.short("nodefs.available");
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["layers"]);
  });
});

test("a disk that stops answering keeps its condition, and pods go for memory alone", async () => {
  const thresholds = [thresholdOf("nodefs.available", "100Mi"), thresholdOf("memory.available", "100Mi")];
  const scene = new EvictionScene({ thresholds });
  scene.add(podWith("critical", {}, { priority: 2_000_000_000 }), 0);
  scene.short("nodefs.available");
  await scene.play(async () => {
    scene.sees = observed({ "memory.available": 900n << 20n });
    scene.unmeasured = new Map([["the file system at /kubelet", "has not answered for 2 s"]]);
    scene.add(podWith("web"), 500);
    await scene.clock.advance(300_000);
    assert.deepEqual([scene.victims, scene.manager.pressures], [[], ["DiskPressure"]]);
    const { standing, pods } = await scene.manager.preview("nodefs.available");
    assert.match(standing, /^nodefs\.available is unknown; not measured: the file system at \/kubelet \(has not /u);
    assert.equal(pods.length, 2);
    const checks = scene.manager.health().filter(({ name }) => name === "eviction signals");
    assert.match(checks[0]?.detail ?? "", /^the file system at \/kubelet has not answered for 2 s: /u);
    scene.short();
    await scene.clock.advance(10_000);
    assert.deepEqual([scene.victims, scene.manager.pressures], [["web"], ["MemoryPressure", "DiskPressure"]]);
  });
});

test("a pod that alone cannot be measured has its last figures, and the others theirs of now", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  const volume = (mebibytes: number) => [{ name: "v", isLocal: true, bytes: mebibytes << 20, inodes: 1 }];
  for (const [name, mebibytes] of [
    ["stalled", 300],
    ["seen", 100],
  ] as const) {
    scene.add(podWith(name), 0);
    scene.usages.set(`uid-${name}`, { containers: [], volumes: volume(mebibytes) });
  }
  scene.sees = observed({ "nodefs.available": 900n << 20n });
  await scene.play(async () => {
    scene.measure("storage");
    scene.usages.delete("uid-stalled");
    await scene.clock.advance(20_000);
    scene.short("nodefs.available");
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["stalled"]);
  });
  const [why = ""] = scene.journal.messages("PodEvicted");
  assert.match(why, /used 300Mi of ephemeral-storage \d\d s ago.*next: default\/seen \(uses 100Mi/u);
});

test("a pod that has no processes now does not go for the memory that it had", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("memory.available", "100Mi")] });
  scene.add(podWith("crashed"), 300);
  scene.add(podWith("runs"), 100);
  scene.sees = observed({ "memory.available": 900n << 20n });
  await scene.play(async () => {
    scene.measure("running");
    scene.usages.delete("uid-crashed");
    await scene.clock.advance(20_000);
    scene.short("memory.available");
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["runs"]);
  });
});

test("a preview says what is known while nothing can be measured", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("web"), 500);
  scene.runningFails = true;
  await scene.play(async () => {
    scene.usages.clear();
    const { standing, pods } = await scene.manager.preview("memory.available");
    assert.match(standing, /^memory\.available is 1Gi.*; what pods use could not be measured now \(timed out\)$/u);
    assert.match(pods[0]?.place ?? "", /^usage not known/u);
  });
});

test("and pods still go for memory", async () => {
  const thresholds = [thresholdOf("nodefs.available", "100Mi"), thresholdOf("memory.available", "100Mi")];
  const scene = new EvictionScene({ thresholds });
  scene.add(podWith("web"), 500);
  scene.fileSystems = undefined;
  scene.sees = observed({ "nodefs.available": 50n << 20n, "memory.available": 50n << 20n });
  await scene.play(async () => {
    await scene.clock.advance(2000);
    assert.deepEqual([scene.victims, scene.reclaimed], [["web"], []]);
  });
});

test("a pod that comes while only critical ones are there is considered at once", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("critical", {}, { priority: 2_000_000_000 }), 900);
  await scene.play(async () => {
    scene.short();
    await scene.clock.advance(10_000);
    scene.add(podWith("late"), 10);
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["late"]);
  });
});

test("a pod that becomes known between a hard threshold and a soft one goes for the hard one", async () => {
  const [hard, soft] = [thresholdOf("memory.available", "100Mi"), thresholdOf("memory.available", "1Gi", 1000)];
  const scene = new EvictionScene({ thresholds: [hard, soft], maxPodGraceSeconds: 600 });
  scene.short();
  await scene.play(async () => {
    await scene.clock.advance(5000);
    const told = (): number => scene.journal.messages("EvictionThresholdMet").length;
    const before = told();
    scene.onLook = () => {
      if (told() > before && scene.pods.length === 0) scene.add(podWith("late"), 10);
    };
    await scene.clock.advance(20_000);
    assert.deepEqual(
      scene.killed.map(({ name, ending }) => [name, ending.graceSeconds]),
      [["late", 1]],
    );
  });
});

test("pods that can free nothing of a disk are considered every ten seconds, and a new one at once", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("nodefs.available", "100Mi")] });
  scene.fileSystems = undefined;
  scene.add(podWith("idle"), 0);
  scene.short("nodefs.available");
  await scene.play(async () => {
    await scene.clock.advance(75_000);
    const attempts = scene.journal.messages("EvictionThresholdMet").length;
    await scene.clock.advance(20_000);
    assert.equal(scene.journal.messages("EvictionThresholdMet").length, attempts + 2);
    scene.add(podWith("logs"), 0);
    const logs = { name: "c", logs: { bytes: 5 << 20, inodes: 2 } };
    scene.usages.set("uid-logs", { containers: [logs], volumes: [] });
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["logs"]);
  });
});

test("of pods above a limit of their own, nothing else is evicted in that pass, also if they are gone at once", async () => {
  const scene = new EvictionScene();
  const limits = { "ephemeral-storage": "1Mi" };
  scene.add(podWith("over", {}, { containers: [{ name: "c", image: "i", resources: { limits } }] }), 1);
  scene.usages.set("uid-over", { containers: [], volumes: [], ephemeralBytes: 2 << 20 });
  scene.add(podWith("large"), 500);
  scene.short();
  scene.onKill = (name) => scene.gone(name);
  await scene.play(async () => {
    assert.deepEqual(scene.victims, ["over"]);
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["over", "large"], "in the next pass");
  });
});

test("a pod of an earlier run that becomes known during an observation is waited for, too", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("second"), 400);
  scene.knowsAll = false;
  scene.short();
  scene.onLook = () => {
    if (scene.knowsAll) return;
    scene.add(podWith("first"), 500);
    scene.evictedBefore("first", 1);
    scene.knowsAll = true;
  };
  await scene.play(async () => {
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["first"]);
    scene.gone("first");
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["first", "second"]);
  });
});

test("a pod of an earlier run that becomes known while usage is read is waited for, too", async () => {
  const scene = new EvictionScene();
  scene.add(podWith("second"), 400);
  scene.onRead = () => {
    if (scene.pods.length > 1) return;
    scene.add(podWith("first"), 500);
    scene.evictedBefore("first", 30);
  };
  scene.short();
  await scene.play(async () => {
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["first"]);
    scene.gone("first");
    await scene.clock.advance(1000);
    assert.deepEqual(scene.victims, ["first", "second"]);
  });
});

test("a pod of an earlier run with a long grace period of its own is not waited for longer than evictions last", async () => {
  const scene = new EvictionScene({ maxPodGraceSeconds: 0 });
  scene.add(podWith("first"), 500);
  scene.add(podWith("second"), 400);
  scene.evictedBefore("first", 3600);
  scene.short();
  await scene.play(async () => {
    await scene.clock.advance(30_000);
    assert.deepEqual(scene.victims, ["first"]);
    await scene.clock.advance(2000);
    assert.deepEqual(scene.victims, ["first", "second"]);
  });
});

test("a pod goes for memory although storage cannot be measured", async () => {
  const scene = new EvictionScene();
  const limits = { "ephemeral-storage": "1Mi" };
  scene.add(podWith("limited", {}, { containers: [{ name: "c", image: "i", resources: { limits } }] }), 500);
  scene.storageFails = true;
  scene.short();
  await scene.play(async () => {
    assert.deepEqual(scene.victims, ["limited"]);
  });
});

test("while storage is measured for a disk that is short, a pod still goes for memory, and then one for the disk", async () => {
  const thresholds = [thresholdOf("nodefs.available", "100Mi"), thresholdOf("memory.available", "100Mi")];
  const scene = new EvictionScene({ thresholds, enforcesStorageLimits: false });
  const volumes = [{ name: "v", isLocal: true, bytes: 300 << 20, inodes: 1 }];
  scene.add(podWith("on-disk"), 0);
  scene.usages.set("uid-on-disk", { memoryBytes: 0, containers: [], volumes });
  scene.add(podWith("in-memory"), 500);
  const hanging = Promise.withResolvers<void>();
  scene.storage = hanging.promise;
  scene.sees = observed({ "nodefs.available": 50n << 20n, "memory.available": 900n << 20n });
  await scene.play(async () => {
    await scene.clock.advance(5_000);
    scene.sees = observed({ "nodefs.available": 50n << 20n, "memory.available": 50n << 20n });
    await scene.clock.advance(1_000);
    assert.deepEqual(scene.victims, ["in-memory"]);
    scene.gone("in-memory");
    scene.sees = observed({ "nodefs.available": 50n << 20n, "memory.available": 900n << 20n });
    await scene.clock.advance(10_000);
    hanging.resolve();
    await scene.clock.advance(10_000);
    assert.deepEqual(scene.victims, ["in-memory", "on-disk"]);
  });
});

test("while usage cannot be measured, pods go for the node by what is known: by priority, and the last figures", async () => {
  for (const [signal, kind] of [
    ["nodefs.available", "storage"],
    ["memory.available", "running"],
  ] as const) {
    for (const wasMeasured of [false, true]) {
      const scene = new EvictionScene({ thresholds: [thresholdOf(signal, "100Mi")] });
      const volumes = [{ name: "data", isLocal: true, bytes: 300 << 20, inodes: 1 }];
      for (const [name, priority] of [
        ["important", 7],
        ["usual", 0],
      ] as const) {
        scene.add(podWith(name, {}, { priority }), 10);
        scene.usages.delete(`uid-${name}`);
      }
      await scene.play(async () => {
        scene.usages.set("uid-important", { memoryBytes: 300 << 20, containers: [], volumes });
        if (wasMeasured) scene.measure(kind);
        scene.sees = observed({ [signal]: 900n << 20n });
        scene.storageFails = scene.runningFails = true;
        await scene.clock.advance(20_000);
        scene.short(signal);
        await scene.clock.advance(10_000);
        if (!wasMeasured) {
          assert.deepEqual(scene.victims, [], "the next measurement may succeed");
          await scene.clock.advance(60_000);
        }
        // A pod of which nothing is known may be no gain, whatever its priority.
        assert.deepEqual(scene.victims, [wasMeasured ? "important" : "usual"]);
        await scene.clock.advance(30_000);
        assert.match((await scene.manager.preview(signal)).standing, /could not be measured now \(timed out\)$/u);
      });
      const [why = ""] = scene.journal.messages("PodEvicted");
      assert.match(why, /; usage could not be measured now \(timed out\); /u);
      assert.match(
        why,
        wasMeasured ? /used 300Mi of [a-z-]+ \d\d s ago/u : /ranked 1 of 2: usage not known, requests none/u,
      );
    }
  }
});

test("the figures of a ranking serve the next one, for three minutes", async () => {
  for (const [seconds, next] of [
    [60, "large"],
    [240, "unknown"],
  ] as const) {
    const scene = new EvictionScene();
    scene.add(podWith("first"), 900);
    scene.add(podWith("large"), 500);
    scene.add(podWith("unknown", {}, { priority: -1 }), 0);
    scene.usages.delete("uid-unknown");
    await scene.play(async () => {
      scene.onKill = () => {
        scene.runningFails = true;
      };
      scene.short();
      await scene.clock.advance(10_000);
      scene.sees = observed({ "memory.available": 900n << 20n });
      scene.gone("first");
      await scene.clock.advance(seconds * 1000);
      scene.short();
      await scene.clock.advance(next === "large" ? 10_000 : 42_000);
      assert.deepEqual(scene.victims, ["first", next]);
    });
  }
});
