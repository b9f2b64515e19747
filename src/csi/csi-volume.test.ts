import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";

function podOf(uid: string): Pod {
  const pod = podWith({ containers: [{ name: "app" }] });
  return { ...pod, metadata: { ...pod.metadata, uid: uid as Pod["metadata"]["uid"] } };
}

test("what one version of a driver staged is not unstaged under a pod that came with one without staging", async () => {
  const scene = new CsiScene();
  await scene.begin();
  await scene.setUp(podOf("u1"), csiSpec());
  scene.capabilities = [];
  scene.calls.length = 0;
  await scene.begin();
  await scene.setUp(podOf("u2"), csiSpec());
  await scene.tearDown("u1");
  scene.devices.tidy();
  scene.capabilities = [1];
  await scene.drivers.add("d", "/csi.sock", "1.0.1");
  await scene.clock.advance(200_000);
  assert.deepEqual([scene.effects, scene.inUse.size], [["nodePublishVolume", "nodeUnpublishVolume"], 1]);
  await scene.tearDown("u2");
  assert.deepEqual(scene.effects.slice(2), ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual([await scene.mounts.list(), ...scene.inUse], [[]]);
});
