import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";

const told = "/told/kubelet";
const pathFields = ["stagingTargetPath", "targetPath", "volumePath"];

/** Every path in the driver's calls. */
function pathsOf({ calls }: CsiScene): string[] {
  return calls.flatMap(({ request }) => pathFields.flatMap((field) => (request[field] as string | undefined) ?? []));
}

for (const volumeMode of ["Filesystem", "Block"] as const) {
  test(`every call for a ${volumeMode} volume has paths where the driver finds the root directory`, async () => {
    const scene = new CsiScene(told);
    await scene.begin();
    scene.storage.bind("c", {});
    const claim = scene.storage.claims.get("ns/c");
    const grown = { ...csiSpec({ volumeMode, capacity: { storage: "2Gi" } }), claim };
    const pod = podWith({ containers: [{ name: "app" }] });
    await scene.setUp(pod, grown);
    await scene.tearDown(pod.metadata.uid);
    assert.deepEqual(scene.effects, [
      "nodeStageVolume",
      "nodePublishVolume",
      "nodeExpandVolume",
      "nodeUnpublishVolume",
      "nodeUnstageVolume",
    ]);
    const paths = pathsOf(scene);
    assert.deepEqual(
      paths.filter((path) => !path.startsWith(`${told}/`)),
      [],
    );
    // Stage and unstage have one, publish and expand two.
    assert.equal(paths.length, 7);
  });
}
