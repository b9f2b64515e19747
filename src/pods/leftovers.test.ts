import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene } from "../../test/support/sim-scene.ts";

const pods = "/var/lib/kubelet/pods";

test("what can't be removed of one pod keeps nothing of the others", async () => {
  const scene = new Scene();
  const { node, clock } = scene;
  const remove = node.cgroups.remove.bind(node.cgroups);
  let isBusy = true;
  node.kill();
  for (const uid of ["bad", "other"]) {
    await node.files.makeDirectory(`${pods}/${uid}`, 0o750);
    await node.cgroups.apply(`/kubepods/pod${uid}`, {});
  }
  node.cgroups.remove = async (path) => {
    if (isBusy && path.endsWith("podbad")) throw new Error("device or resource busy");
    await remove(path);
  };
  node.start();
  await clock.run(clock.nowMs + 60_000);
  const left = async (): Promise<string[]> => (await node.files.list(pods)).map(({ name }) => name);
  const swept = (): string[] =>
    ["", "_errors"].flatMap((end) => scene.counted(`kubelet_orphan_pod_cleaned_volumes${end}`));
  assert.deepEqual(await left(), ["bad"]);
  assert.deepEqual(swept(), ["1", "1"]);
  isBusy = false;
  await clock.run(clock.nowMs + 10_000);
  assert.deepEqual(await left(), []);
  assert.deepEqual(swept(), ["0", "0"]);
});
