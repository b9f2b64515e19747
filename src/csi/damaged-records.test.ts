import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec, root } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";

function podOf(uid: string): Pod {
  const pod = podWith({ containers: [{ name: "app" }] });
  return { ...pod, metadata: { ...pod.metadata, uid: uid as Pod["metadata"]["uid"] } };
}

const records = {
  Filesystem: `${root}/pods/u1/volumes/kubernetes.io~csi/pv/vol_data.json`,
  Block: `${root}/plugins/kubernetes.io/csi/volumeDevices/pv/data/vol_data.json`,
} as const;

for (const volumeMode of ["Filesystem", "Block"] as const) {
  test(`a volume whose record is damaged is unpublished before it is unstaged: ${volumeMode}`, async () => {
    const scene = new CsiScene();
    await scene.begin();
    await scene.setUp(podOf("u1"), csiSpec({ volumeMode }));
    await scene.files.write(records[volumeMode], "", 0o644);
    scene.calls.length = 0;
    await scene.tearDown("u1");
    assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
    assert.deepEqual([await scene.mounts.list(), ...scene.inUse], [[]]);
  });
}
