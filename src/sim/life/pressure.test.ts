import assert from "node:assert/strict";
import { test } from "node:test";
import { podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Pod } from "../../api/pod.ts";

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
