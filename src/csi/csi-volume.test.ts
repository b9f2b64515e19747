import assert from "node:assert/strict";
import { test } from "node:test";
import { Emitter } from "../base/emitter.ts";
import { CsiScene, csiSpec, noAttachment } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import type { PreparedVolume } from "../volumes/volume-plugin.ts";

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

async function publishAgain({ upkeeps = [] }: PreparedVolume): Promise<void> {
  await upkeeps[0]?.run(new AbortController().signal, noAttachment, new Emitter());
}

test("republishing gives the pod's group what the driver has written since", async () => {
  const scene = new CsiScene();
  await scene.begin();
  const pod = podOf("u1");
  const grouped: Pod = { ...pod, spec: { ...pod.spec, securityContext: { fsGroup: 2000 } } };
  const csi = { driver: "d", volumeHandle: "h", fsType: "ext4" };
  const prepared = await scene.setUp(grouped, csiSpec({ csi, accessModes: ["ReadWriteOnce"] }));
  const token = `${prepared.hostPath}/token`;
  await scene.files.write(token, "renewed", 0o600);
  await publishAgain(prepared);
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume", "nodePublishVolume"]);
  assert.equal(scene.files.ownerOf(token)?.gid, 2000);
});

test("republishing a block volume repeats no Events", async () => {
  const scene = new CsiScene();
  await scene.begin();
  const prepared = await scene.setUp(podOf("u1"), csiSpec({ volumeMode: "Block" }));
  const told = (): number => scene.entries.filter(({ what }) => what === "SuccessfulMountVolume").length;
  const before = told();
  await publishAgain(prepared);
  assert.deepEqual([scene.effects.length, before, told()], [3, 2, 2]);
});
