import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import { PodHoldings } from "../runtime/pod-holdings.ts";
import { silentLog } from "../sim/machine.ts";
import { PodLeftovers } from "./leftovers.ts";

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

test("directories that are no pod's stay with their content, are named, and are removed by nobody", async () => {
  const scene = new Scene();
  const { node, clock } = scene;
  const pod = podOf({ containers: [runs("app")] });
  node.add(pod);
  await scene.pass(5000);
  // As `cp -a pods/uid-1 pods/uid-1.bak` of an administrator who saves an emptyDir.
  const data = "volumes/kubernetes.io~empty-dir/data";
  for (const copy of ["uid-1.bak", "7b2c44f0-27a9-4d0a-9b4e-0a1b2c3d4e5f.old"]) {
    await node.files.makeDirectory(`${pods}/${copy}/${data}`, 0o750);
    await node.files.write(`${pods}/${copy}/${data}/precious`, "data", 0o600);
    for (const name of ["podwright.json", "podwright-pod.json"]) {
      const text = await node.files.read(`${pods}/uid-1/${name}`, 100_000);
      await node.files.write(`${pods}/${copy}/${name}`, text, 0o600);
    }
  }
  await node.files.makeDirectory(`${pods}/lost+found`, 0o700);
  node.remove("uid-1");
  await clock.run(clock.nowMs + 120_000);
  node.kill();
  node.start();
  await clock.run(clock.nowMs + 120_000);
  const left = async (): Promise<string[]> => (await node.files.list(pods)).map(({ name }) => name).toSorted();
  const others = ["7b2c44f0-27a9-4d0a-9b4e-0a1b2c3d4e5f.old", "lost+found", "uid-1.bak"];
  assert.deepEqual(await left(), others);
  for (const copy of ["uid-1.bak", "7b2c44f0-27a9-4d0a-9b4e-0a1b2c3d4e5f.old"]) {
    assert.ok(await node.files.stat(`${pods}/${copy}/${data}/precious`));
  }
  assert.deepEqual(scene.counted("kubelet_orphan_pod_cleaned_volumes_errors"), ["0"]);
  const leftovers = new PodLeftovers({
    ...{ clock: new ManualClock(), files: node.files, journal: { record: () => 0 }, log: silentLog },
    node: { rootDirectory: "/var/lib/kubelet", podLogsRoot: "/var/log/pods" },
    holdings: new PodHoldings([]),
  });
  for (const uid of await leftovers.podUids()) assert.equal(await leftovers.isPods(uid), false, uid);
  assert.deepEqual(
    leftovers.others.toSorted(),
    others.map((name) => `${pods}/${name}`),
  );
  await node.files.removeTree(`${pods}/uid-1.bak`);
  await leftovers.podUids();
  assert.equal(leftovers.others.length, 2);
});

test("leftovers of a pod are removed by the form of its UID, or by what podwright knows of it", async () => {
  const scene = new Scene();
  const { node, clock } = scene;
  const file = "volumes/kubernetes.io~empty-dir/data/file";
  const usual = ["7b2c44f0-27a9-4d0a-9b4e-0a1b2c3d4e5f", "0123456789abcdef0123456789abcdef"];
  for (const uid of [...usual, "logged", "grouped"]) {
    await node.files.makeDirectory(`${pods}/${uid}/volumes/kubernetes.io~empty-dir/data`, 0o750);
    await node.files.write(`${pods}/${uid}/${file}`, "", 0o600);
  }
  await node.files.makeDirectory("/var/log/pods/default_web_logged", 0o755);
  await node.cgroups.apply("/kubepods/podgrouped", {});
  for (const name of ["volumes", "plugins"]) await node.files.makeDirectory(`${pods}/begun/${name}`, 0o750);
  node.start();
  await clock.run(clock.nowMs + 120_000);
  assert.deepEqual(await node.files.list(pods), []);
});
