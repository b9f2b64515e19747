import assert from "node:assert/strict";
import { test } from "node:test";
import { podOf, runs, Scene } from "../../test/support/sim-scene.ts";

const pods = "/var/lib/kubelet/pods";

test("a failed removal of one pod does not affect others", async () => {
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

test("a volume of a missing driver survives its pod's end, restarts and housekeeping; its directory is removed once it is empty", async () => {
  const scene = new Scene();
  const { node, clock } = scene;
  const pod = podOf({ containers: [runs("app")] });
  node.add(pod);
  await scene.pass(5000);
  const directory = `${pods}/uid-1`;
  const volume = `${directory}/volumes/kubernetes.io~csi/pvc-1`;
  const target = `${volume}/mount`;
  await node.files.makeDirectory(target, 0o750);
  await node.files.write(`${target}/precious`, "data", 0o600);
  await node.files.write(`${volume}/vol_data.json`, "{}", 0o600);
  await node.mounts.mount({ source: "/dev/sdb", target, fileSystem: "ext4", options: [] });
  const isUntouched = async (): Promise<void> => {
    assert.ok(await node.files.stat(`${target}/precious`));
    assert.ok(await node.files.stat(`${volume}/vol_data.json`));
    assert.equal((await node.mounts.below(target)).length, 1);
  };
  node.remove("uid-1");
  await clock.run(clock.nowMs + 120_000);
  assert.deepEqual(node.pods(), [], "the pod itself is gone");
  await isUntouched();
  const found = scene.counted("kubelet_orphan_pod_cleaned_volumes_errors");
  assert.deepEqual(found, ["1"], "as upstream counts what it can't remove");
  const [note, ...again] = scene.entries("VolumesLeft");
  assert.match(note?.message ?? "", /no volume plugin owns volumes\/kubernetes\.io~csi\/pvc-1 \(mounted\): left/);
  const removals = scene.entries("RemoveLeftovers").map(({ kind }) => kind);
  assert.deepEqual([again, removals], [[], ["action", "outcome"]], "once a life, not at each look");
  node.kill();
  node.start();
  await clock.run(clock.nowMs + 120_000);
  await isUntouched();
  assert.equal(scene.entries("VolumesLeft").length, 2);
  await node.mounts.unmount(target);
  await node.files.remove(`${target}/precious`);
  await node.files.remove(`${volume}/vol_data.json`);
  await clock.run(clock.nowMs + 30_000);
  assert.equal(await node.files.stat(directory), undefined);
  assert.deepEqual(scene.counted("kubelet_orphan_pod_cleaned_volumes_errors"), ["0"]);
});
