import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec, podOf, root } from "../../test/support/csi-scene.ts";
import { simHashing } from "../sim/hashing.ts";

const plugin = `${root}/plugins/kubernetes.io/csi`;
const ofPod = `${root}/pods/u1/volumes/kubernetes.io~csi/pv`;
const staged = `${plugin}/d/${simHashing.sha256("h")}`;
const device = `${plugin}/volumeDevices/pv/data`;
const cases = [
  { directory: ofPod, volumeMode: "Filesystem" },
  { directory: staged, volumeMode: "Filesystem" },
  { directory: device, volumeMode: "Block" },
] as const;

async function unfinished(scene: CsiScene): Promise<readonly string[]> {
  return (await scene.tree()).filter((path) => path.endsWith(".tmp"));
}

for (const { directory, volumeMode } of cases) {
  const place = directory.slice(root.length + 1);

  test(`a kill while a data file was written leaves nothing behind the start, in ${place}`, async () => {
    const scene = new CsiScene();
    await scene.begin();
    await scene.setUp(podOf("u1"), csiSpec({ volumeMode }));
    await scene.files.leaveUnfinished(`${directory}/vol_data.json`);
    assert.equal((await unfinished(scene)).length, 1);
    await scene.begin();
    assert.deepEqual(await unfinished(scene), []);
    await scene.tearDown("u1");
    assert.deepEqual(
      (await scene.tree()).filter((path) => !path.endsWith("/")),
      [],
    );
  });

  test(`a kill before there was a data file leaves nothing, in ${place}`, async () => {
    const scene = new CsiScene();
    await scene.files.makeDirectory(directory, 0o750);
    await scene.files.leaveUnfinished(`${directory}/vol_data.json`);
    await scene.begin();
    await scene.tearDown("u1");
    assert.equal(await scene.files.stat(directory), undefined);
    assert.deepEqual(scene.effects, []);
  });

  test(`a volume is removed with what a kill has left of its data file in an earlier run, in ${place}`, async () => {
    const scene = new CsiScene();
    await scene.begin();
    await scene.setUp(podOf("u1"), csiSpec({ volumeMode }));
    await scene.files.leaveUnfinished(`${directory}/vol_data.json`);
    await scene.tearDown("u1");
    assert.equal(await scene.files.stat(directory), undefined);
  });
}

test("files of somebody else in a volume's directory stay, and its driver is called once", async () => {
  const scene = new CsiScene();
  await scene.begin();
  const pod = podOf("u1");
  // Its stored spec has the volume as an inline one, by which a volume is known without its data file.
  scene.pods.set("u1", { ...pod, spec: { ...pod.spec, volumes: [{ name: "pv", csi: { driver: "d" } }] } });
  await scene.setUp(pod, csiSpec());
  await scene.files.write(`${ofPod}/note`, "of an administrator", 0o644);
  for (let look = 0; look < 3; look++) await scene.tearDown("u1");
  assert.deepEqual(
    scene.effects.filter((method) => method === "nodeUnpublishVolume"),
    ["nodeUnpublishVolume"],
  );
  assert.deepEqual(
    (await scene.files.list(ofPod)).map(({ name }) => name),
    ["note"],
  );
});
