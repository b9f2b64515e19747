import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { SimMounts } from "../sim/machine.ts";
import { VolumePaths } from "../volumes/volume-paths.ts";
import type { VolumePlugin } from "../volumes/volume-plugin.ts";
import { inlineSpec } from "../volumes/volume-spec.ts";
import { withSeenMounts } from "./seen-mounts.ts";

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
  propagates = true;
  await volume.setUp(never);
  assert.equal(await volume.isSetUp(), true);
});
