import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { SimMounts } from "../sim/machine.ts";
import { VolumePaths } from "../volumes/volume-paths.ts";
import type { VolumePlugin } from "../volumes/volume-plugin.ts";
import { inlineSpec } from "../volumes/volume-spec.ts";
import { withSeenMounts } from "./seen-mounts.ts";
import { CsiScene, csiSpec, root } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";

const hostPath = "/root/pods/u/volumes/kubernetes.io~csi/v/mount";
const pod = { metadata: { name: "web", namespace: "default", uid: podUid("u") }, spec: { containers: [] } };
const never = AbortSignal.any([]);

test("a published volume that is not visible here fails, and the message names the propagation", async () => {
  const mounts = new SimMounts();
  let [published, propagates] = [false, false];
  const driver: VolumePlugin = {
    name: "kubernetes.io~csi",
    followsObjects: false,
    owns: () => true,
    prepare: () => ({
      ...{ name: "v", type: "csi", hostPath, readOnly: false, own: true },
      isSetUp: async () => published,
      setUp: async () => {
        published = true;
        if (propagates) await mounts.mount({ source: "/d", target: hostPath, fileSystem: "", options: ["bind"] });
      },
    }),
    reconstruct: async () => undefined,
  };
  const spec = inlineSpec({ name: "v", csi: { driver: "d" } });
  const volume = withSeenMounts(driver, mounts).prepare(pod, spec, new VolumePaths("/root", podUid("u")));
  await assert.rejects(volume.setUp(never), /nothing is mounted at .*\/mount: its container .* Bidirectional/u);
  assert.equal(published, true);
  assert.equal(await volume.isSetUp(), false);
  const place = { problem: "another node agent has started" };
  const left = withSeenMounts(driver, mounts, place).prepare(pod, spec, new VolumePaths("/root", podUid("u")));
  await assert.rejects(left.setUp(never), /nothing is mounted at .*\/mount: another node agent has started$/u);
  propagates = true;
  await volume.setUp(never);
  assert.equal(await volume.isSetUp(), true);
});

test("once the driver's mounts propagate, the volume is staged and published again", async () => {
  const scene = new CsiScene();
  await scene.begin();
  let propagates = false;
  const seen = { below: async (path: string) => (propagates ? await scene.mounts.below(path) : []) };
  const web = podWith({ containers: [{ name: "app" }] });
  const paths = new VolumePaths(root, web.metadata.uid);
  const volume = withSeenMounts(scene.plugin, seen).prepare(web, csiSpec(), paths);
  await assert.rejects(volume.setUp(never), /Bidirectional/u);
  propagates = true;
  await volume.setUp(never);
  const once = ["nodeStageVolume", "nodePublishVolume"];
  assert.deepEqual([await volume.isSetUp(), ...scene.effects], [true, ...once, ...once]);
});

test("the wrapped plugin can what the plugin can", async () => {
  const scene = new CsiScene();
  await scene.begin();
  const wrapped = withSeenMounts(scene.plugin, scene.mounts);
  const { name, followsObjects, supportsMountOptions } = scene.plugin;
  assert.deepEqual(
    [wrapped.name, wrapped.followsObjects, wrapped.supportsMountOptions],
    [name, followsObjects, supportsMountOptions],
  );
  assert.equal(wrapped.supportsMountOptions, true);
  assert.equal(wrapped.owns(csiSpec()), true);
});
