import assert from "node:assert/strict";
import { test } from "node:test";
import { thresholdOf } from "../../../test/support/eviction.ts";
import { deaf, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { machineCapacity } from "../machine-resources.ts";
import { Evictions } from "../rules/evictions.ts";

const wanted = (uid: string, requests?: Readonly<Record<string, string>>): Pod =>
  podOf({ containers: [runs(uid, requests && { resources: { requests } })] }, uid, uid);
const told = (scene: Scene, uid: string): readonly (string | undefined)[] => {
  const { phase, reason } = scene.status(uid) ?? {};
  return [phase, reason];
};
test("pressure rejects new pods and spares running ones, also over a restart, until it ends", async () => {
  const scene = new Scene();
  scene.node.add(wanted("early"));
  await scene.pass(10_000);
  assert.deepEqual(told(scene, "early"), ["Running", undefined]);
  scene.node.pressure.set("DiskPressure");
  scene.node.add(wanted("refused", { memory: "1Mi" }));
  await scene.pass(10_000);
  assert.deepEqual(told(scene, "refused"), ["Failed", "Evicted"]);
  scene.node.kill();
  scene.node.start();
  await scene.pass(120_000);
  assert.deepEqual(
    [told(scene, "early"), told(scene, "refused")],
    [
      ["Running", undefined],
      ["Failed", "Evicted"],
    ],
  );
  assert.equal(scene.at("started early").length, 1);
  assert.equal(scene.at("started refused").length, 0);
  scene.node.pressure.set("MemoryPressure");
  scene.node.add(wanted("best-effort"));
  scene.node.add(wanted("burstable", { memory: "1Mi" }));
  await scene.pass(10_000);
  assert.deepEqual(told(scene, "best-effort"), ["Failed", "Evicted"]);
  assert.deepEqual(told(scene, "burstable"), ["Running", undefined]);
  scene.node.pressure.set();
  scene.node.add(wanted("late"));
  await scene.pass(10_000);
  assert.deepEqual(told(scene, "late"), ["Running", undefined]);
});

test("a pod that is past its deadline, and stops for long, is evicted before others, and ends sooner as Evicted", async () => {
  const scene = new Scene();
  const { node } = scene;
  const never = { maxPodGraceSeconds: 0, enforcesStorageLimits: false, watchesMemory: false, asks: false };
  node.evictions = { ...never, thresholds: [thresholdOf("memory.available", "100Mi")], transitionMs: 60_000 };
  node.kill();
  node.start();
  const broken = scene.judge((of, report) => new Evictions(of, report));
  const overdue = { activeDeadlineSeconds: 30, terminationGracePeriodSeconds: 3600 };
  node.add(podOf({ ...overdue, containers: [deaf("overdue")] }, "overdue", "overdue"));
  node.add(wanted("innocent"));
  node.resources.use("overdue", "memory", 4 * 2 ** 30);
  node.resources.use("innocent", "memory", 2 ** 20);
  await scene.pass(60_000);
  assert.deepEqual([told(scene, "overdue"), node.isEnding("overdue")], [["Running", undefined], true]);
  node.resources.useElsewhere("memory", machineCapacity.memory - 4 * 2 ** 30);
  await scene.pass(20_000);
  assert.deepEqual(
    [told(scene, "overdue"), told(scene, "innocent"), broken],
    [["Failed", "Evicted"], ["Running", undefined], []],
  );
});
