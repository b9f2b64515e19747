import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene } from "../../test/support/sim-scene.ts";

const pods = "/var/lib/kubelet/pods";

test("what can't be removed of one pod keeps nothing of the others", async () => {
  const { node, clock } = new Scene();
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
  assert.deepEqual(await left(), ["bad"]);
  isBusy = false;
  await clock.run(clock.nowMs + 10_000);
  assert.deepEqual(await left(), []);
});
